//! What migrations have to keep to so that two versions can work on one schema, and that rows of every older schema come
//! through all of them.

mod locks;
mod older_rows;
mod partial;
mod reasons;
mod released;
mod rules;
mod statements;
mod unknown_fields;
mod variants;
