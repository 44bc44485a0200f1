//! [`Summary`]: how much time each type of operation, and each kernel, takes.

use crate::commands::microseconds;
use nnhal::{Profile, ProfiledStep};
use serde::Serialize;
use std::collections::HashMap;

/// The steps of a run, by what they do.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// By type of operation, or of the last one of those that a step computes.
    operations: Vec<Group>,
    /// By kernel.
    kernels: Vec<Group>,
}

/// Steps that do the same; those that take the most time come first.
#[derive(Debug, Serialize)]
struct Group {
    name: String,
    steps: usize,
    /// The sum of the steps' medians.
    us: f64,
    /// Of all steps.
    share: f64,
}

impl Summary {
    /// Of a profile.
    pub fn of(profile: &Profile) -> Self {
        Self {
            operations: groups(profile, |it| it.step.place.operation_name()),
            kernels: groups(profile, |it| it.step.kernel.clone()),
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (what, groups) in self.parts() {
            text += &format!("\n{what:44} steps       time  share  together\n");
            let mut together = 0.0;
            for Group { name, steps, us, share } in groups {
                together += share;
                let (share, sum) = (100.0 * share, 100.0 * together);
                text += &format!("{name:44} {steps:5} {us:7.1} us {share:5.1}% {sum:8.1}%\n");
            }
        }
        text
    }

    /// As comma-separated values.
    pub fn csv(&self) -> String {
        let mut text = "by,name,steps,us,share\n".to_owned();
        for (what, groups) in self.parts() {
            for Group { name, steps, us, share } in groups {
                text += &format!("{what},{},{steps},{us},{share}\n", quoted(name));
            }
        }
        text
    }

    fn parts(&self) -> [(&'static str, &[Group]); 2] {
        [("operation", &self.operations), ("kernel", &self.kernels)]
    }
}

fn groups(profile: &Profile, name: impl Fn(&ProfiledStep) -> String) -> Vec<Group> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for step in &profile.steps {
        let name = name(step);
        let place = *places.entry(name.clone()).or_insert_with(|| {
            groups.push(Group { name, steps: 0, us: 0.0, share: 0.0 });
            groups.len() - 1
        });
        groups[place].steps += 1;
        groups[place].us += step.time.map_or(0.0, microseconds);
    }
    let total: f64 = groups.iter().map(|group| group.us).sum();
    for group in &mut groups {
        group.share = if total > 0.0 { group.us / total } else { 0.0 };
    }
    groups.sort_by(|a, b| b.us.total_cmp(&a.us));
    groups
}

/// A field of comma-separated values.
pub fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_and_quotes_are_one_field() {
        assert_eq!(quoted("a,b \"c\""), "\"a,b \"\"c\"\"\"");
        assert_eq!(quoted("a b"), "a b");
    }
}
