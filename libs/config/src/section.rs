//! A section of the configuration: its keys, each declared once with its field, its name, and what it accepts.
//!
//! Everything else follows from that: reading, the name of the variable, what is shown, and the reference of all keys. The defaults and
//! the explanations for operators stand in `config/default.yaml`; tests compare the two.

use crate::reader::Reader;

/// What is read of several keys below one path.
pub(crate) trait Section {
    fn read(reader: &mut Reader, path: &str) -> Self;
}

/// Declares sections. A key is `field: type = reader_method("key", what it accepts)`, with a reason for its limits if that needs one.
macro_rules! sections {
    ($(
        $(#[$doc:meta])*
        pub struct $name:ident {$(
            $(#[$about:meta])*
            $vis:vis $field:ident: $type:ty = $read:ident($key:literal $(, $accepted:expr)*) $(because $reason:literal)?,
        )*}
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {$(
            $(#[$about])*
            #[doc = concat!("`", $key, "`")]
            $vis $field: $type,
        )*}

        impl $crate::section::Section for $name {
            fn read(reader: &mut $crate::reader::Reader, path: &str) -> Self {
                $(
                    let key = $crate::layers::join(path, $key);
                    let $field = reader.$read(&key $(, $accepted)*);
                    $(reader.reason(&key, $reason);)?
                )*
                Self { $($field),* }
            }
        }
    )*};
}

pub(crate) use sections;
