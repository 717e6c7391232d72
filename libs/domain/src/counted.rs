//! Numbers and counted nouns as people read them.

/// A number with its thousands apart.
pub fn number(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A counted noun; `one` and `many` are its forms.
pub fn of(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", number(count), if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_nouns_have_the_form_that_fits() {
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(number(100), "100");
        assert_eq!(of(1, "push", "pushes"), "1 push");
        assert_eq!(of(0, "push", "pushes"), "0 pushes");
        assert_eq!(of(1_000, "push", "pushes"), "1,000 pushes");
    }
}
