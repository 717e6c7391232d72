//! Which API a command asks that resellers and operators both have: one rule for all of them.

use crate::operator::OperatorArgs;
use crate::output;
use crate::portal::PortalArgs;

/// The APIs that such a command may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// The reseller portal, with the key of the reseller.
    Portal,
    /// The operator API, with the key of an operator.
    Operator,
}

/// The API that is asked; where there are keys for both and no option for operators decides, a note names it.
pub(super) fn asked(is_for_operators: bool, portal: &PortalArgs, operator: &OperatorArgs) -> Asked {
    let keys = (portal.has_key(), operator.has_key());
    if keys == (true, true) && !is_for_operators {
        output::note(
            "two keys are given: the reseller portal is asked, with the key of the reseller (RESELLER_KEY); options for operators, or RESELLER_KEY \
             unset, have the operator API asked, with OPERATOR_KEY",
        );
    }
    of_keys(is_for_operators, keys)
}

/// Options that only the operator API knows decide; else the key of the reseller, where there is one.
fn of_keys(is_for_operators: bool, (of_reseller, of_operator): (bool, bool)) -> Asked {
    if is_for_operators || (!of_reseller && of_operator) {
        Asked::Operator
    } else {
        Asked::Portal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_the_reseller_goes_before_that_of_the_operator_unless_an_option_for_operators_is_given() {
        for (is_for_operators, keys, asked) in [
            (false, (true, true), Asked::Portal),
            (false, (true, false), Asked::Portal),
            (false, (false, true), Asked::Operator),
            (false, (false, false), Asked::Portal),
            (true, (true, true), Asked::Operator),
            (true, (true, false), Asked::Operator),
        ] {
            assert_eq!(
                of_keys(is_for_operators, keys),
                asked,
                "{is_for_operators} {keys:?}"
            );
        }
    }
}
