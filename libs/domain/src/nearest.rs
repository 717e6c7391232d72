//! Names that are like one that is not known.

/// How like a name has to be to be offered: 1 is the same.
const LIKE: f64 = 0.6;
/// How many are offered.
const OFFERED: usize = 3;

/// The known names that are most like `name`, the likest first.
pub fn names<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let name = name.to_lowercase();
    let mut found: Vec<(f64, &str)> = known
        .into_iter()
        .map(|candidate| {
            let likeness = strsim::normalized_damerau_levenshtein(&name, &candidate.to_lowercase());
            // A user who writes "created" or "transfer" means a part of a name.
            let is_part = !name.is_empty() && candidate.split('.').any(|part| part == name);
            (if is_part { likeness.max(LIKE) } else { likeness }, candidate)
        })
        .filter(|(likeness, _)| *likeness >= LIKE)
        .collect();
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found.into_iter().take(OFFERED).map(|(_, name)| name).collect()
}

/// `"; did you mean a, b or c?"`, or nothing when no name is like it.
pub fn question<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match names(name, known).as_slice() {
        [] => String::new(),
        [one] => format!("; did you mean {one}?"),
        [others @ .., last] => format!("; did you mean {} or {last}?", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 4] = [
        "domain.created",
        "domain.deleted",
        "contact.created",
        "host.created",
    ];

    #[test]
    fn slips_and_parts_find_their_names() {
        assert_eq!(names("domain.craeted", KNOWN)[0], "domain.created");
        assert_eq!(names("Contact.Created", KNOWN)[0], "contact.created");
        assert_eq!(names("created", KNOWN).len(), 3);
        assert_eq!(names("certificate", KNOWN), [] as [&str; 0]);
    }

    #[test]
    fn the_question_is_english() {
        assert_eq!(question("xyz", KNOWN), "");
        assert_eq!(question("deleted", KNOWN), "; did you mean domain.deleted?");
        assert!(
            question("created", KNOWN).contains(", "),
            "{}",
            question("created", KNOWN)
        );
    }
}
