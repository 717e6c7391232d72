//! The push keys of Swrve: a mapping whose names are free, so that each entry is judged by itself.

use domain::push::Platform;

use super::{Reader, kind};
use crate::yaml::{Content, Node};
use crate::{Fault, Origin, Problem, PushKeys, Secret};

const FORM: &str = "a mapping from prototype to IOS and ANDROID keys";

impl Reader {
    pub(crate) fn push_keys(&mut self, key: &str) -> PushKeys {
        let entry = self.declare(key, FORM, true).clone();
        let mut keys = PushKeys::default();
        let mut faults = Vec::new();
        match entry.value.content {
            content if content.is_null() => {}
            Content::Map(prototypes) => {
                for (prototype, platforms) in prototypes {
                    prototype_keys(&mut keys, &prototype, platforms, &mut faults);
                }
            }
            other => faults.push((String::new(), entry.value.line, unexpected(FORM, &other))),
        }
        for (path, line, fault) in faults {
            let origin = match &entry.origin {
                Origin::File { path, .. } => Origin::File {
                    path: path.clone(),
                    line,
                },
                other => other.clone(),
            };
            self.problems.push(Problem {
                subject: format!("{key}{path}"),
                origin: Some(origin),
                fault,
                mend: "write every prototype as 'Hello': { IOS: <push key>, ANDROID: <push key> }".to_owned(),
            });
        }
        keys
    }
}

fn prototype_keys(keys: &mut PushKeys, prototype: &str, node: Node, faults: &mut Vec<(String, u64, Fault)>) {
    let path = format!(".'{prototype}'");
    let Content::Map(platforms) = node.content else {
        faults.push((
            path,
            node.line,
            unexpected("a mapping with IOS and ANDROID", &node.content),
        ));
        return;
    };
    for (name, push_key) in platforms {
        let path = format!("{path}.{name}");
        let platform = Platform::ALL
            .into_iter()
            .find(|platform| platform.as_str() == name);
        match (platform, push_key.content) {
            (None, _) => faults.push((path, push_key.line, Fault::UnknownKey)),
            (Some(platform), Content::Scalar(serde_json::Value::String(text))) if !text.trim().is_empty() => {
                keys.insert(prototype, platform, Secret::new(text));
            }
            // A platform without an app has no push key.
            (Some(_), content) if content.is_null() => {}
            (Some(_), content) => faults.push((
                path,
                push_key.line,
                unexpected("a text that is not empty", &content),
            )),
        }
    }
}

fn unexpected(expected: &str, content: &Content) -> Fault {
    let found = format!("{} (not shown, it is a secret)", kind(content));
    Fault::Unexpected {
        expected: expected.to_owned(),
        found,
    }
}
