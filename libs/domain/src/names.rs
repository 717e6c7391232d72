//! What enums of names have in common: strum derives the names as they are stored and shown, and one rule reads them back.

/// A name that this version does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} {found:?}: use one of {known}")]
pub struct UnknownName {
    /// What it should be a name of.
    pub what: &'static str,
    /// The text that is none.
    pub found: String,
    /// The names that there are.
    pub known: String,
}

/// Gives an enum that derives `strum::VariantArray` its `ALL`.
#[macro_export]
macro_rules! listed {
    ($name:ident) => {
        impl $name {
            /// Every one there is.
            pub const ALL: [Self; <Self as ::strum::VariantArray>::VARIANTS.len()] =
                *<Self as ::strum::VariantArray>::VARIANTS
                    .first_chunk()
                    .expect("invariant: an array is as long as itself");
        }
    };
}

/// Gives an enum that derives `strum::IntoStaticStr` and `strum::VariantArray` its `ALL` and `as_str`, `Display`, and a `FromStr` whose
/// error says what `$what` is unknown.
#[macro_export]
macro_rules! named {
    ($name:ident, $what:literal) => {
        $crate::listed!($name);

        impl $name {
            /// The name, as it is stored and shown.
            pub fn as_str(self) -> &'static str {
                self.into()
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::names::UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let named = Self::ALL.into_iter().find(|one| one.as_str() == text);
                named.ok_or_else(|| $crate::names::UnknownName {
                    what: $what,
                    found: text.to_owned(),
                    known: Self::ALL.map(Self::as_str).join(", "),
                })
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::capability::Capability;
    use crate::dead_letter::FailureClass;
    use crate::dead_letter_job::{JobAction, JobPause, JobStatus};
    use crate::email::{EmailKind, EmailStatus};
    use crate::event::UnknownFields;
    use crate::key::Role;
    use crate::notification::{OutageClass, RetryPlan};
    use crate::push::{AttemptStatus, ErrorType, Platform, PushStatus};
    use crate::reason::{PushReason, StateReason};
    use crate::subscription::{QuotaRequestStatus, RecoveryEnd, ReplayStatus, SubscriptionState};

    /// What callers, rows and messages hold. A variant may get another name in the code, but not these.
    #[test]
    fn names_are_what_they_always_were_and_are_read_back() {
        macro_rules! names {
            ($($name:ident: $names:literal,)*) => {$(
                assert_eq!($name::ALL.map($name::as_str).join(" "), $names);
                for one in $name::ALL {
                    assert_eq!(one.as_str().parse(), Ok(one));
                    assert_eq!(one.to_string(), one.as_str());
                }
            )*};
        }
        names! {
            PushStatus: "SCHEDULED PENDING IN_MEMORY RETRY SENT FAILED GIVEN_UP",
            AttemptStatus: "IN_PROCESS OK ERROR",
            ErrorType: "SWRVE MESSAGE_PROTOTYPE_KEY OTHER",
            Platform: "IOS ANDROID",
            RetryPlan: "SHORT DAY",
            PushReason: "REPLAYED CANCELLED",
            SubscriptionState: "PENDING_VERIFICATION ACTIVE DEGRADED DEACTIVATED",
            StateReason: "CREATED VERIFIED FAILING RECOVERED REDIRECTED GONE BY_RESELLER ENDPOINT_CHANGED VERIFICATION_REQUESTED",
            OutageClass: "CONNECT DNS TIMEOUT TLS",
            RecoveryEnd: "FAILING INACTIVE SWITCHED_OFF",
            QuotaRequestStatus: "REQUESTED APPROVED DENIED",
            ReplayStatus: "RUNNING COMPLETED CANCELLED",
            JobAction: "REPLAY DISCARD",
            JobStatus: "RUNNING PAUSED COMPLETED CANCELLED",
            JobPause: "CANARY CANARY_FAILED FAILED_AGAIN",
            EmailStatus: "PENDING SENDING SENT FAILED",
            EmailKind: "RETRIES_EXHAUSTED STATE_CHANGED VERIFICATION_FAILED DELIVERY_REFUSED QUOTA_DECIDED ADDRESS_CONFIRMATION \
                        SECURITY_CHANGED DELIVERIES_RECOVERED",
            UnknownFields: "REFUSE DROP ALLOW",
            Role: "ingest viewer operator admin embedder reseller reseller-viewer",
            Capability: "bodies manage resend secrets.reveal secrets.rotate quota",
            FailureClass: "dns tls connect timeout protocol egress http-3xx http-4xx http-5xx http-other swrve-4xx swrve-5xx \
                           swrve-other swrve-unreachable prototype-key lease-lost possibly-sent expired cancelled subscription-ended \
                           broker malformed internal unknown",
        }
    }

    #[test]
    fn an_unknown_name_is_named_with_those_that_are_known() {
        let error = "root".parse::<Role>().unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"unknown role "root": use one of ingest, viewer, operator, admin, embedder, reseller, reseller-viewer"#
        );
    }
}
