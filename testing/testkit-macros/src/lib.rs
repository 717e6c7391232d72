//! The attribute `#[testkit::test]`. `testkit::run` says what a test is run with.

use proc_macro::TokenStream;
use quote::quote;
use syn::{Error, FnArg, ItemFn, Type, parse_macro_input};

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
    quote! {
        #(#attrs)*
        #[::sqlx::test(migrator = "::store::MIGRATOR")]
        async fn #name(pool: ::sqlx::PgPool) {
            ::testkit::run(pool, async |#argument| { #lent #block }).await;
        }
    }
    .into()
}
