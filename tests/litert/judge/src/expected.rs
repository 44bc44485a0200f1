//! What is expected not to agree: a list of cases with reasons.
//!
//! A line has the case's name, what becomes of it (`differs`, `refused`, `unsupported`) and the reason, with spaces
//! between; lines that begin with `#` are comments. A case that is not in the list has to agree, one that is has to be
//! what the list says, so that the list holds nothing that no longer occurs.

use crate::case::Outcome;
use std::collections::BTreeMap;
use std::path::Path;

/// The list.
#[derive(Debug, Default)]
pub struct Expected(BTreeMap<String, Entry>);

#[derive(Debug)]
struct Entry {
    kind: String,
    reason: String,
}

impl Expected {
    /// Reads the list.
    ///
    /// # Errors
    /// It cannot be read, a line is incomplete, or a case is in it twice.
    pub fn read(file: &Path) -> Result<Self, String> {
        Self::parse(&std::fs::read_to_string(file).map_err(|error| error.to_string())?)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut all = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |what: &str| format!("line {}: {what}: {line}", number + 1);
            let (name, rest) = line.split_once(' ').ok_or_else(|| wrong("it says nothing"))?;
            let (kind, reason) =
                rest.trim().split_once(' ').ok_or_else(|| wrong("it has no reason"))?;
            if !["differs", "refused", "unsupported"].contains(&kind) {
                return Err(wrong("expected \"differs\", \"refused\" or \"unsupported\""));
            }
            let entry = Entry { kind: kind.to_owned(), reason: reason.trim().to_owned() };
            if all.insert(name.to_owned(), entry).is_some() {
                return Err(wrong("the case is there twice"));
            }
        }
        Ok(Self(all))
    }

    /// The cases of the list.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The reason, if a case became what is expected of it and that is not that it agrees.
    ///
    /// # Errors
    /// It became something else; what, as a sentence.
    pub fn judge(&self, name: &str, outcome: &Outcome) -> Result<Option<&str>, String> {
        let (kind, text) = (outcome.kind(), outcome.text());
        match self.0.get(name) {
            None if matches!(outcome, Outcome::Agrees) => Ok(None),
            None => Err(format!("{kind}: {text}")),
            Some(entry) if entry.kind == kind => Ok(Some(&entry.reason)),
            Some(entry) => {
                let colon = if text.is_empty() { "" } else { ": " };
                Err(format!("{kind}{colon}{text}; the list says that it is \"{}\"", entry.kind))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> Expected {
        Expected::parse("# Why.\n\nodd_case  differs  halves\nlarge refused no room\n").unwrap()
    }

    #[test]
    fn what_is_listed_is_expected_with_its_reason() {
        let list = list();
        let found = list.judge("odd_case", &Outcome::Differs("1 of 9".into()));
        assert_eq!(found, Ok(Some("halves")));
        assert_eq!(list.judge("large", &Outcome::Refused("beyond".into())), Ok(Some("no room")));
        assert_eq!(list.judge("other", &Outcome::Agrees), Ok(None));
        assert_eq!(list.names().collect::<Vec<_>>(), ["large", "odd_case"]);
    }

    #[test]
    fn everything_else_is_a_fault() {
        let list = list();
        let fault = |name: &str, outcome: Outcome| list.judge(name, &outcome).unwrap_err();
        assert_eq!(fault("other", Outcome::Differs("1 of 9".into())), "differs: 1 of 9");
        assert_eq!(fault("other", Outcome::Unsupported("EXP".into())), "unsupported: EXP");
        // No longer, or something else than the list says.
        assert_eq!(
            fault("odd_case", Outcome::Agrees),
            "agrees; the list says that it is \"differs\""
        );
        assert_eq!(
            fault("large", Outcome::Fails("preparing".into())),
            "fails: preparing; the list says that it is \"refused\""
        );
    }

    #[test]
    fn incomplete_lines_and_cases_that_are_there_twice_are_refused() {
        for text in
            ["odd_case", "odd_case differs", "odd_case fails always", "a differs b\na differs c"]
        {
            assert!(Expected::parse(text).is_err(), "{text}");
        }
    }
}
