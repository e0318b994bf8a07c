//! Reading the text of a kubeconfig.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Cluster, Context, Error, Hidden, Kind, Kubeconfig, Material, Named, User};

pub(super) fn parse(file: String, text: &str) -> Result<Kubeconfig, Error> {
    let root = root(&file, text)?;
    let file = Shape { file };
    let clusters = file.entries(&root, Kind::Cluster, |at| {
        Ok(Cluster {
            server: at.text("server")?.unwrap_or_default(),
            tls_server_name: at.text("tls-server-name")?,
            authority: at.material("certificate-authority")?,
            insecure: at.flag("insecure-skip-tls-verify")?,
            proxy_url: at.text("proxy-url")?,
        })
    })?;
    let users = file.entries(&root, Kind::User, |at| {
        Ok(User {
            certificate: at.material("client-certificate")?,
            key: at.material("client-key")?,
            token: at.text("token")?.map(Hidden::new),
        })
    })?;
    let contexts = file.entries(&root, Kind::Context, |at| {
        Ok(Context {
            cluster: at.text("cluster")?.unwrap_or_default(),
            user: at.text("user")?.unwrap_or_default(),
            namespace: at.text("namespace")?,
        })
    })?;
    let whole = At {
        file: &file,
        path: String::new(),
        value: &root,
    };
    let current = whole.text("current-context")?;
    Ok(Kubeconfig {
        file: file.file,
        text: Hidden::new(text),
        current,
        clusters,
        users,
        contexts,
    })
}

/// Reads the whole file as a mapping.
pub(super) fn root(file: &str, text: &str) -> Result<Value, Error> {
    let value = match crate::yaml::read(text) {
        Ok(value) => value,
        Err(crate::Error::Syntax { line, column, .. }) => {
            return Err(Error::Syntax {
                file: file.to_string(),
                line,
                column,
            });
        }
        Err(source) => {
            return Err(Error::Edit {
                file: file.to_string(),
                source: Box::new(source),
            });
        }
    };
    match value {
        Value::Null => Err(Error::Empty {
            file: file.to_string(),
        }),
        Value::Object(_) => Ok(value),
        _ => Err(Error::Shape {
            file: file.to_string(),
            field: "the whole file".to_string(),
            expected: "a mapping",
        }),
    }
}

struct Shape {
    file: String,
}

impl Shape {
    fn wrong(&self, field: String, expected: &'static str) -> Error {
        Error::Shape {
            file: self.file.clone(),
            field,
            expected,
        }
    }

    fn entries<T>(
        &self,
        root: &Value,
        kind: Kind,
        read: impl Fn(&At<'_>) -> Result<T, Error>,
    ) -> Result<Vec<Named<T>>, Error> {
        let items = match root.get(kind.list()) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(self.wrong(kind.list().to_string(), "a list")),
        };
        let mut entries = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let path = format!("{}[{index}]", kind.list());
            if !item.is_object() {
                return Err(self.wrong(path, "a mapping"));
            }
            let entry = At {
                file: self,
                path: format!("{path}."),
                value: item,
            };
            let name = entry.text("name")?;
            let name = name.ok_or_else(|| self.wrong(format!("{path}.name"), "a text"))?;
            let nothing = Value::Null;
            let content = item.get(kind.as_str()).unwrap_or(&nothing);
            if !matches!(content, Value::Null | Value::Object(_)) {
                return Err(self.wrong(format!("{path}.{kind}"), "a mapping"));
            }
            let value = read(&At {
                file: self,
                path: format!("{path}.{kind}."),
                value: content,
            })?;
            entries.push(Named { name, value });
        }
        Ok(entries)
    }
}

/// A mapping of the file, and the way to it for errors.
struct At<'a> {
    file: &'a Shape,
    path: String,
    value: &'a Value,
}

impl At<'_> {
    fn text(&self, key: &str) -> Result<Option<String>, Error> {
        match self.value.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.wrong(key, "a text")),
        }
    }

    fn flag(&self, key: &str) -> Result<bool, Error> {
        match self.value.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.wrong(key, "true or false")),
        }
    }

    /// Reads `KEY-data`, which wins, or the path at `KEY`.
    fn material(&self, key: &str) -> Result<Option<Material>, Error> {
        let data_key = format!("{key}-data");
        if let Some(data) = self.text(&data_key)? {
            let letters: String = data.split_ascii_whitespace().collect();
            let pem = STANDARD.decode(letters);
            return match pem {
                Ok(pem) => Ok(Some(Material::Inline(pem))),
                Err(_) => Err(self.wrong(&data_key, "base64")),
            };
        }
        Ok(self.text(key)?.map(Material::File))
    }

    fn wrong(&self, key: &str, expected: &'static str) -> Error {
        self.file.wrong(format!("{}{key}", self.path), expected)
    }
}
