//! What was read from the database a moment ago, so that requests in a row do not read it again.
//!
//! It deliberately remembers nothing that was not found, so that what is new is there at once; what has changed or gone is
//! seen when the old is forgotten.

use std::borrow::Borrow;
use std::future::Future;
use std::hash::Hash;

use domain::key::REMEMBERED;
use moka::future::Cache;

/// Most values remembered.
const VALUES: u64 = 10_000;

/// The values of the last seconds, by key: for as long as keys are remembered, an old one still counts.
pub struct Remembered<K, V>(Cache<K, V>);

/// Why there is no value.
enum Missing<E> {
    Nothing,
    Failed(E),
}

impl<K, V> Default for Remembered<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    fn default() -> Self {
        let cache = Cache::builder()
            .max_capacity(VALUES)
            .time_to_live(REMEMBERED)
            .build();
        Self(cache)
    }
}

impl<K, V> Remembered<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// The value of `key`: the remembered one, or what `look_up` finds. Simultaneous requests share one look-up.
    ///
    /// # Errors
    ///
    /// What `look_up` failed with; it is not remembered.
    pub async fn find<Q, E>(
        &self,
        key: &Q,
        look_up: impl Future<Output = Result<Option<V>, E>>,
    ) -> Result<Option<V>, E>
    where
        K: Borrow<Q>,
        Q: ToOwned<Owned = K> + Hash + Eq + ?Sized,
        E: Clone + Send + Sync + 'static,
    {
        if let Some(value) = self.0.get(key).await {
            return Ok(Some(value));
        }
        let looking_up = async {
            let found = look_up.await.map_err(Missing::Failed)?;
            found.ok_or(Missing::Nothing)
        };
        match self.0.try_get_with_by_ref(key, looking_up).await {
            Ok(value) => Ok(Some(value)),
            Err(missing) => match &*missing {
                Missing::Nothing => Ok(None),
                Missing::Failed(error) => Err(error.clone()),
            },
        }
    }

    /// Forgets the value of `key`, since it was changed here.
    pub async fn forget<Q>(&self, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.0.invalidate(key).await;
    }

    /// Forgets everything, since what has changed is not known by its keys.
    pub fn forget_all(&self) {
        self.0.invalidate_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_found_is_not_looked_up_again_and_what_was_not_is() {
        let remembered = Remembered::<String, u8>::default();
        let found =
            async |value: Result<Option<u8>, &'static str>| remembered.find("key", async { value }).await;
        assert_eq!(found(Ok(None)).await, Ok(None));
        assert_eq!(found(Err("away")).await, Err("away"));
        assert_eq!(found(Ok(Some(1))).await, Ok(Some(1)));
        assert_eq!(found(Ok(Some(2))).await, Ok(Some(1)));
        remembered.forget("key").await;
        assert_eq!(found(Ok(Some(2))).await, Ok(Some(2)));
    }
}
