//! Keys that hold several values: a list, or one text with commas, which a variable is easier to fill with.

use serde_json::Value;

use super::Reader;
use crate::Secret;
use crate::yaml::Content;

impl Reader {
    /// Texts in a form that `parse` recognises; `form` describes all of them.
    pub(crate) fn list<T>(
        &mut self,
        key: &'static str,
        form: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Vec<T> {
        let Some(texts) = self.texts(key, form) else {
            return self.unexpected(key, form, Vec::new());
        };
        let mut values = Vec::new();
        for text in &texts {
            let Some(value) = parse(text) else {
                self.push_unexpected(
                    key,
                    form.to_owned(),
                    format!("the text {}", Value::from(text.as_str())),
                );
                return Vec::new();
            };
            values.push(value);
        }
        values
    }

    /// Like [`Reader::list`], of secrets.
    pub(crate) fn secret_list(
        &mut self,
        key: &'static str,
        form: &str,
        valid: impl Fn(&str) -> bool,
    ) -> Vec<Secret> {
        let texts = self.texts(key, form);
        match texts.filter(|texts| texts.iter().all(|text| valid(text))) {
            Some(texts) => texts.into_iter().map(Secret::new).collect(),
            None => {
                self.unexpected_secret(key, form);
                Vec::new()
            }
        }
    }

    fn texts(&mut self, key: &'static str, form: &str) -> Option<Vec<String>> {
        let Content::List(items) = &self.entry(key, form).value.content else {
            let text = self.text(key, form)?;
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            return Some(parts.map(str::to_owned).collect());
        };
        let texts = items.iter().map(|item| match &item.content {
            Content::Scalar(Value::String(text)) => Some(text.clone()),
            _ => None,
        });
        texts.collect()
    }
}
