//! The attributes of tests with a database of their own: `#[testkit::test]`, for which `testkit::run` says what a test is run
//! with, and `#[testkit::database_test]`.

use proc_macro::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Error, FnArg, Ident, ItemFn, Type, parse_macro_input};

/// A test with a database of its own, which takes a `testkit::Fixture`, or a reference to one, as its only argument.
#[proc_macro_attribute]
pub fn test(_: TokenStream, item: TokenStream) -> TokenStream {
    let ItemFn {
        attrs, sig, block, ..
    } = parse_macro_input!(item as ItemFn);
    let (name, mut arguments) = (&sig.ident, sig.inputs.iter());
    let (Some(FnArg::Typed(fixture)), None) = (arguments.next(), arguments.next()) else {
        let error = Error::new_spanned(&sig, "a test takes one fixture");
        return error.into_compile_error().into();
    };
    let (argument, lent) = match &*fixture.ty {
        Type::Reference(lent) => {
            let (name, ty) = (&fixture.pat, &lent.elem);
            (quote!(owned: #ty), quote!(let #name = &owned;))
        }
        _ => (quote!(#fixture), quote!()),
    };
    let run = quote!(|pool| ::testkit::run(pool, async |#argument| { #lent #block }));
    on_database(&attrs, name, &run)
}

/// A test with a database of its own, of which it takes the pool as its only argument, and may leave there what it likes.
#[proc_macro_attribute]
pub fn database_test(_: TokenStream, item: TokenStream) -> TokenStream {
    let ItemFn {
        attrs, sig, block, ..
    } = parse_macro_input!(item as ItemFn);
    let (name, pool) = (&sig.ident, &sig.inputs);
    on_database(&attrs, name, &quote!(async |#pool| #block))
}

fn on_database(attrs: &[Attribute], name: &Ident, test: &impl ToTokens) -> TokenStream {
    quote! {
        #(#attrs)*
        #[::core::prelude::v1::test]
        fn #name() {
            ::testkit::on_database(concat!(env!("CARGO_PKG_NAME"), "::", module_path!(), "::", stringify!(#name)), #test);
        }
    }
    .into()
}
