//! Types of values.

use std::fmt;

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// Anything.
    Any,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Duration,
    Timestamp,
    /// A type itself.
    Kind,
    List(Box<Self>),
    Map(Box<Self>, Box<Self>),
    Optional(Box<Self>),
    /// A message, by its name in the table.
    Message(&'static str),
}

impl Type {
    pub(super) fn list(of: Self) -> Self {
        Self::List(Box::new(of))
    }

    pub(super) fn map(key: Self, value: Self) -> Self {
        Self::Map(Box::new(key), Box::new(value))
    }

    pub(super) fn optional(of: Self) -> Self {
        Self::Optional(Box::new(of))
    }

    /// Returns whether a value of this type can stand where the other is expected, or could turn out to.
    pub(super) fn fits(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) | (_, Self::Any) => true,
            (Self::Null, Self::Message(_) | Self::Duration | Self::Timestamp)
            | (Self::Message(_) | Self::Duration | Self::Timestamp, Self::Null) => true,
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a.fits(b),
            (Self::Map(key, value), Self::Map(other_key, other_value)) => {
                key.fits(other_key) && value.fits(other_value)
            }
            _ => self == other,
        }
    }

    /// Returns the type of a value that is either; none if there is no such type.
    pub(super) fn either(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Null, other) | (other, Self::Null) if other.fits(&Self::Null) => Some(other),
            (one, other) if one == other => Some(one),
            (Self::Any, _) | (_, Self::Any) => Some(Self::Any),
            (Self::List(one), Self::List(other)) => Some(Self::list(one.either(*other)?)),
            (Self::Optional(one), Self::Optional(other)) => {
                Some(Self::optional(one.either(*other)?))
            }
            (Self::Map(key, value), Self::Map(other_key, other_value)) => Some(Self::map(
                key.either(*other_key)?,
                value.either(*other_value)?,
            )),
            _ => None,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("value of any type"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::Text => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Kind => f.write_str("type"),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(of) => write!(f, "optional({of})"),
            Self::Message(name) => f.write_str(name),
        }
    }
}
