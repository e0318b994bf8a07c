//! Operators and functions that every expression can use.

use super::types::Type;

/// Functions of one value: the types it can have, and the type that comes out.
const CONVERSIONS: &[(&str, &[Type], Type)] = {
    use Type::{Bool, Bytes, Double, Duration, Int, Text, Timestamp, Uint};
    &[
        ("bool", &[Bool, Text], Bool),
        ("bytes", &[Bytes, Text], Bytes),
        ("double", &[Double, Int, Text, Uint], Double),
        ("duration", &[Duration, Int, Text], Duration),
        ("int", &[Int, Double, Duration, Text, Timestamp, Uint], Int),
        (
            "string",
            &[Text, Bool, Bytes, Double, Duration, Int, Timestamp, Uint],
            Text,
        ),
        ("timestamp", &[Timestamp, Int, Text], Timestamp),
        ("uint", &[Uint, Double, Int, Text], Uint),
    ]
};

/// Parts of a point in time.
const PARTS: [&str; 10] = [
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
];

/// Returns the type of a call without a value before the dot.
pub(super) fn call(name: &str, arguments: &[Type]) -> Option<Type> {
    match (name, arguments) {
        ("size", [of]) => is_sized(of).then_some(Type::Int),
        ("dyn", [_]) => Some(Type::Any),
        ("type", [_]) => Some(Type::Kind),
        ("matches", [text, pattern]) => both(text, pattern, &Type::Text).then_some(Type::Bool),
        (_, [of]) => {
            let (_, takes, gives) = CONVERSIONS.iter().find(|(known, ..)| *known == name)?;
            takes
                .iter()
                .any(|known| of.fits(known))
                .then(|| gives.clone())
        }
        _ => None,
    }
}

/// Returns the type of a call of a value.
pub(super) fn method(of: &Type, name: &str, arguments: &[Type], optionals: bool) -> Option<Type> {
    if *of == Type::Any {
        return any_method(name);
    }
    match (of, name, arguments) {
        (Type::Text, "contains" | "startsWith" | "endsWith" | "matches", [text]) => {
            text.fits(&Type::Text).then_some(Type::Bool)
        }
        (_, "size", []) => is_sized(of).then_some(Type::Int),
        (Type::Duration, "getHours" | "getMinutes" | "getSeconds" | "getMilliseconds", []) => {
            Some(Type::Int)
        }
        (Type::Timestamp, name, [] | [Type::Text | Type::Any]) if PARTS.contains(&name) => {
            Some(Type::Int)
        }
        (Type::Optional(_), "hasValue", []) => Some(Type::Bool),
        (Type::Optional(of), "value", []) => Some((**of).clone()),
        (Type::Optional(of), "orValue", [other]) => of.fits(other).then(|| (**of).clone()),
        (Type::Optional(_), "or", [other]) => of.fits(other).then(|| of.clone()),
        (Type::List(of), "first" | "last", []) if optionals => Some(Type::optional((**of).clone())),
        (Type::List(of), "unwrapOpt", []) if optionals => match &**of {
            Type::Optional(of) => Some(Type::list((**of).clone())),
            Type::Any => Some(Type::list(Type::Any)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the type of a call of a value that may be anything.
fn any_method(name: &str) -> Option<Type> {
    match name {
        "contains" | "startsWith" | "endsWith" | "matches" | "hasValue" => Some(Type::Bool),
        "size" => Some(Type::Int),
        _ if PARTS.contains(&name) => Some(Type::Int),
        "value" | "orValue" | "or" | "first" | "last" | "unwrapOpt" => Some(Type::Any),
        _ => None,
    }
}

fn is_sized(of: &Type) -> bool {
    matches!(
        of,
        Type::Any | Type::Text | Type::Bytes | Type::List(_) | Type::Map(..)
    )
}

fn both(a: &Type, b: &Type, kind: &Type) -> bool {
    a.fits(kind) && b.fits(kind)
}

/// Returns the type of two values with an operator between them.
pub(super) fn operator(sign: &str, left: &Type, right: &Type) -> Option<Type> {
    match sign {
        "==" | "!=" => left.fits(right).then_some(Type::Bool),
        "<" | "<=" | ">" | ">=" => {
            let ordered = |kind: &Type| {
                !matches!(
                    kind,
                    Type::Kind
                        | Type::List(_)
                        | Type::Map(..)
                        | Type::Optional(_)
                        | Type::Message(_)
                )
            };
            (left.fits(right) && ordered(left) && ordered(right)).then_some(Type::Bool)
        }
        "in" => match right {
            Type::List(of) | Type::Map(of, _) => left.fits(of).then_some(Type::Bool),
            Type::Any => Some(Type::Bool),
            _ => None,
        },
        _ => arithmetic(sign, left, right),
    }
}

fn arithmetic(sign: &str, left: &Type, right: &Type) -> Option<Type> {
    use Type::{Any, Bytes, Double, Duration, Int, List, Null, Text, Timestamp, Uint};
    match (sign, left, right) {
        (_, Any, Any) => Some(Any),
        // Null stands for a duration or a point in time, too.
        ("+" | "-", Null, Null | Any | Duration | Timestamp)
        | ("+" | "-", Any | Duration | Timestamp, Null) => Some(Any),
        ("+", Timestamp, Duration) | ("+", Duration, Timestamp) | ("-", Timestamp, Duration) => {
            Some(Timestamp)
        }
        ("-", Timestamp, Timestamp) | ("-", Any, Timestamp) => Some(Duration),
        ("+", Timestamp, Any) | ("+", Any, Timestamp) => Some(Timestamp),
        ("-", Timestamp, Any) | ("+" | "-", Any, Duration) | ("+", Duration, Any) => Some(Any),
        ("-", Duration, Any) => Some(Duration),
        _ => {
            let known = if *left == Any { right } else { left };
            let can = match sign {
                "+" => matches!(
                    known,
                    Int | Uint | Double | Text | Bytes | Duration | List(_)
                ),
                "-" => matches!(known, Int | Uint | Double | Duration),
                "*" | "/" => matches!(known, Int | Uint | Double),
                _ => matches!(known, Int | Uint),
            };
            match (left, right) {
                _ if !can || !left.fits(right) => None,
                (List(_), List(_)) => left.clone().either(right.clone()),
                _ => Some(known.clone()),
            }
        }
    }
}
