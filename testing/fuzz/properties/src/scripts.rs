//! The scripts of the receiver and of the Swrve simulator: what is taken is written and taken again as the same, and what
//! is refused is refused by the number of its rule.

/// Checks the property.
pub fn check(json: &[u8]) {
    match simulators::receiver::parse_script(json) {
        Ok(rules) => {
            let written = serde_json::to_vec(&rules).expect("rules can be written");
            assert_eq!(
                simulators::receiver::parse_script(&written).expect("and read"),
                rules
            );
            assert!(
                rules
                    .iter()
                    .filter_map(|rule| rule.status)
                    .all(|status| (200..600).contains(&status))
            );
        }
        Err(simulators::receiver::ScriptError::Rule { number, .. }) => assert!(number >= 1),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match simulators::swrve::parse_script(json) {
        Ok(rules) => {
            let written = serde_json::to_vec(&rules).expect("rules can be written");
            assert_eq!(
                simulators::swrve::parse_script(&written).expect("and read"),
                rules
            );
        }
        Err(simulators::swrve::ScriptError::Rule { number, .. }) => assert!(number >= 1),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
