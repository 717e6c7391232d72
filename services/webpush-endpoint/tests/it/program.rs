//! The program `autoendpoint`, under the variables of the reference.

use std::process::{Child, Command, Stdio};

use sqlx::{ConnectOptions as _, PgPool};
use store::Store;
use testkit::eventually;

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[sqlx::test(migrations = false)]
async fn an_empty_database_gets_its_schema_and_its_months(pool: PgPool) {
    let program = Command::new(env!("CARGO_BIN_EXE_autoendpoint"))
        // A variable of Postrider wins over one of the reference.
        .env_remove("DATABASE_URL")
        .env("AUTOEND__DB_DSN", pool.connect_options().to_url_lossy().as_str())
        .env("AUTOEND__PORT", "0")
        .env(
            "AUTOEND__CRYPTO_KEYS",
            "[ahsxBmOXR-N04gL44_0nsRjzEQI_YdZ4xObdHcC0HVM=]",
        )
        .env("POSTRIDER__ADMIN__LISTEN", "127.0.0.1:0")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _running = Running(program.unwrap());
    let store = Store::from_pool(pool.clone());
    eventually("the schema to be made", async || {
        store.is_migrated().await.is_ok_and(|done| done).then_some(())
    })
    .await;
    eventually("the months to be made", async || {
        let months = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'webpush_messages'::regclass";
        let made: i64 = sqlx::query_scalar(months).fetch_one(&pool).await.unwrap();
        (made >= 2).then_some(())
    })
    .await;
}
