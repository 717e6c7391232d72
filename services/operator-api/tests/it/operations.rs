//! The operations of the API, as its OpenAPI document lists them, so that what holds for all of them is tested for new ones too.

use reqwest::RequestBuilder;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::rig::Rig;

/// An operation that needs a key.
pub(crate) struct Operation {
    /// In lower case.
    pub(crate) method: String,
    /// With an identifier that nothing has, wherever one is wanted.
    pub(crate) path: String,
    /// What the path is when the identifier is none; `None` when it holds no identifier.
    pub(crate) malformed_path: Option<String>,
    /// What the path is when each of its parameters is no UTF-8; `None` when it has none.
    pub(crate) undecodable_path: Option<String>,
    /// A body that is acceptable, when it takes one: the document's example, or a note.
    pub(crate) body: Option<Value>,
    /// The names in its query string.
    pub(crate) parameters: Vec<String>,
    /// The parameters that it needs, with the document's example of each.
    needed: Vec<String>,
}

impl Operation {
    pub(crate) fn changes(&self) -> bool {
        self.method != "get"
    }

    /// Whether operators may not do it either.
    pub(crate) fn is_of_administrators(&self) -> bool {
        let of_administrators = [
            "/quota-requests/",
            "/keys",
            "/visits/",
            "/portal-visits/",
            "/event-types/",
        ]
        .map(|beginning| self.path.starts_with(beginning));
        self.changes() && (of_administrators.contains(&true) || self.path.ends_with("/limits"))
    }

    /// A request that lacks nothing but a key that may send it.
    pub(crate) fn request(&self, rig: &Rig, path: &str) -> RequestBuilder {
        let path = match &*self.needed {
            [] => path.to_owned(),
            needed => {
                let join = if path.contains('?') { '&' } else { '?' };
                format!("{path}{join}{}", needed.join("&"))
            }
        };
        let request = rig.request(&self.method.to_uppercase(), &path);
        match &self.body {
            Some(body) => request.json(body),
            None => request,
        }
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// Every operation of the document that needs a key.
pub(crate) fn operations() -> Vec<Operation> {
    let document = serde_json::to_value(operator_api::openapi()).unwrap();
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation["tags"][0] != "service" {
                found.push(read(method, path, operation));
            }
        }
    }
    assert!(found.iter().any(Operation::changes) && !found.iter().all(Operation::changes));
    found
}

fn read(method: &str, path: &str, operation: &Value) -> Operation {
    let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
    let (mut known, mut malformed) = (path.to_owned(), path.to_owned());
    let mut undecodable = path.to_owned();
    let mut identified = false;
    let (mut named, mut needed) = (Vec::new(), Vec::new());
    for parameter in &parameters {
        let name = parameter["name"].as_str().unwrap();
        if parameter["in"] == "query" {
            named.push(name.to_owned());
            if parameter["required"] == true {
                let example = parameter["example"].as_str();
                needed.push(format!(
                    "{name}={}",
                    example.expect("an example of what is needed")
                ));
            }
            continue;
        }
        let placeholder = format!("{{{name}}}");
        undecodable = undecodable.replace(&placeholder, "%ff");
        if parameter["schema"]["format"] == "uuid" {
            identified = true;
            known = known.replace(&placeholder, &Uuid::now_v7().to_string());
            malformed = malformed.replace(&placeholder, "nothing");
        } else {
            let example = parameter["example"].as_str().unwrap_or("push");
            known = known.replace(&placeholder, example);
            malformed = malformed.replace(&placeholder, example);
        }
    }
    assert!(!known.contains('{'), "{path}: a parameter is not documented");
    let body = match &operation["requestBody"]["content"]["application/json"]["example"] {
        Value::Null => json!({"note": "because"}),
        example => example.clone(),
    };
    Operation {
        method: method.to_owned(),
        path: known,
        malformed_path: identified.then_some(malformed),
        undecodable_path: (undecodable != path).then_some(undecodable),
        body: operation["requestBody"].is_object().then_some(body),
        parameters: named,
        needed,
    }
}
