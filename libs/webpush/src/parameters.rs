//! Headers that are lists of parameters: `keyid="a";dh="b",keyid="c"`. Their parts are told apart as the reference does.

/// The parameters of a header, by the order in which they stand there.
pub(crate) struct Parameters<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Parameters<'a> {
    /// `None` when a part has no `=`. Empty parts mean nothing (RFC 9110, sections 5.6.1 and 5.6.6).
    pub(crate) fn parse(header: &'a str) -> Option<Self> {
        let given = header.split([',', ';']).filter(|part| !part.trim().is_empty());
        let parts = given.map(|part| {
            let (name, value) = part.split_once('=')?;
            Some((name.trim(), value.trim_matches([' ', '\t', '"'])))
        });
        parts.collect::<Option<Vec<_>>>().map(Self)
    }

    /// The first value of that name.
    pub(crate) fn find(&self, name: &str) -> Option<&'a str> {
        let mut found = self.0.iter().filter(|(found, _)| *found == name);
        found.next().map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_in_any_part() {
        let parsed = Parameters::parse(r#"keyid="a"; dh="b==",p256ecdsa=c;dh=d"#).unwrap();
        assert_eq!(parsed.find("dh"), Some("b=="));
        assert_eq!(parsed.find("p256ecdsa"), Some("c"));
        assert_eq!(parsed.find("salt"), None);
        assert!(Parameters::parse("dh").is_none());
        let parsed = Parameters::parse(",dh=b; ;keyid=a;").unwrap();
        assert_eq!((parsed.find("dh"), parsed.find("keyid")), (Some("b"), Some("a")));
        assert_eq!(Parameters::parse("").unwrap().find(""), None);
    }
}
