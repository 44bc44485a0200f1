//! Parts of requests that have a limit: [`List`], [`Name`], [`Members`], and [`AnyText`]. A request is refused at the first that is too many, before
//! the rest of it is read.

use crate::parameters::MOST_NAME;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// A list of at most `MOST` elements.
#[derive(Debug)]
pub(crate) struct List<T, const MOST: usize>(pub(crate) Vec<T>);

impl<T, const MOST: usize> Default for List<T, MOST> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// A text of at most [`MOST_NAME`] bytes.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name(pub(crate) String);

/// The members of an object, at most `MOST`. Of those that are called the same the last one counts.
#[derive(Debug)]
pub(crate) struct Members<T, const MOST: usize>(pub(crate) BTreeMap<String, T>);

impl<T, const MOST: usize> Default for Members<T, MOST> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

/// A text; `None`: something else, of which nothing is kept.
#[derive(Debug)]
pub(crate) struct AnyText(pub(crate) Option<String>);

struct OfList<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for OfList<T, MOST> {
    type Value = List<T, MOST>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(next) = all.next_element()? {
            if list.len() == MOST {
                return Err(A::Error::custom(format!("an array of more than {MOST} elements")));
            }
            list.push(next);
        }
        Ok(List(list))
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for List<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(OfList(PhantomData))
    }
}

struct OfName;

impl Visitor<'_> for OfName {
    type Value = Name;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Name, E> {
        match text.len() {
            ..=MOST_NAME => Ok(Name(text.to_owned())),
            found => Err(E::custom(format!("a name of {found} bytes, at most {MOST_NAME}"))),
        }
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(OfName)
    }
}

struct OfMembers<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for OfMembers<T, MOST> {
    type Value = Members<T, MOST>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
        let mut members = BTreeMap::new();
        while let Some((Name(name), value)) = all.next_entry()? {
            if members.len() == MOST && !members.contains_key(&name) {
                return Err(A::Error::custom(format!("an object of more than {MOST} members")));
            }
            members.insert(name, value);
        }
        Ok(Members(members))
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Members<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(OfMembers(PhantomData))
    }
}

struct OfAnyText;

impl<'de> Visitor<'de> for OfAnyText {
    type Value = AnyText;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_str<E>(self, text: &str) -> Result<AnyText, E> {
        Ok(AnyText(Some(text.to_owned())))
    }

    fn visit_bool<E>(self, _: bool) -> Result<AnyText, E> {
        Ok(AnyText(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<AnyText, E> {
        Ok(AnyText(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<AnyText, E> {
        Ok(AnyText(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<AnyText, E> {
        Ok(AnyText(None))
    }

    fn visit_unit<E>(self) -> Result<AnyText, E> {
        Ok(AnyText(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<AnyText, A::Error> {
        while all.next_element::<IgnoredAny>()?.is_some() {}
        Ok(AnyText(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<AnyText, A::Error> {
        while all.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(AnyText(None))
    }
}

impl<'de> Deserialize<'de> for AnyText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(OfAnyText)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error<'t, T: Deserialize<'t> + fmt::Debug>(text: &'t str) -> String {
        serde_json::from_str::<T>(text).unwrap_err().to_string()
    }

    #[test]
    fn what_is_within_its_limit_is_read() {
        let List(list): List<i64, 3> = serde_json::from_str("[1, 2, 3]").unwrap();
        assert_eq!(list, [1, 2, 3]);
        let Members(members): Members<i64, 2> =
            serde_json::from_str(r#"{"a": 1, "b": 2, "a": 3}"#).unwrap();
        assert_eq!(members, [("a".to_owned(), 3), ("b".to_owned(), 2)].into());
        let Name(name) = serde_json::from_str(r#""\u00e4""#).unwrap();
        assert_eq!(name, "ä");
        assert!(error::<List<i64, 3>>("{}").contains("expected an array"));
        assert!(error::<Members<i64, 3>>("[]").contains("expected an object"));
    }

    #[test]
    fn sec_the_first_that_is_too_many_is_the_end() {
        // What follows is no JSON, and was not read.
        let found = error::<List<i64, 3>>("[1, 2, 3, 4, ?");
        assert!(found.starts_with("an array of more than 3 elements"), "{found}");
        let found = error::<Members<i64, 1>>(r#"{"a": 1, "a": 1, "b": 1, ?"#);
        assert!(found.starts_with("an object of more than 1 members"), "{found}");
        let long = format!("[\"{}\", ?", "x".repeat(MOST_NAME + 1));
        let found = error::<List<Name, 3>>(&long);
        assert!(found.starts_with("a name of 4097 bytes, at most 4096"), "{found}");
    }
}
