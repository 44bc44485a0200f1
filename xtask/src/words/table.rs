//! The words that were replaced.

/// A word, or a turn of phrase, and what to write instead.
#[derive(Debug, PartialEq)]
pub(super) struct Entry {
    /// Its name in reports.
    pub(super) name: &'static str,
    /// What is refused: whole words in lower case, identifiers taken to pieces.
    pub(super) pattern: &'static str,
    /// What is allowed all the same: a pattern for the place with 30 characters before and after.
    pub(super) unless: &'static str,
    /// What to write.
    pub(super) instead: &'static str,
    /// The folders where the word is refused; none: everywhere.
    pub(super) only_in: &'static [&'static str],
    /// Files or folders that may use it, each with the reason.
    pub(super) except: &'static [(&'static str, &'static str)],
}

const fn entry(name: &'static str, pattern: &'static str, instead: &'static str) -> Entry {
    Entry { name, pattern, unless: "", instead, only_in: &[], except: &[] }
}

impl Entry {
    const fn unless(self, unless: &'static str) -> Self {
        Self { unless, ..self }
    }

    const fn only_in(self, only_in: &'static [&'static str]) -> Self {
        Self { only_in, ..self }
    }

    const fn except(self, except: &'static [(&'static str, &'static str)]) -> Self {
        Self { except, ..self }
    }
}

pub(super) const TABLE: &[Entry] = &[
    // Pictures.
    entry(
        "rooms",
        r"rooms|room \| (?:what it holds|contents)|(?:a|the) room (?:per|for each|to come|of its own|it is in)",
        "modules, capacity",
    ),
    entry("house", r"(?:of|in) (?:the|this) house|house rules?", "the project, rules"),
    entry("chores", "chores?", "tasks, commands"),
    entry("drawers", "drawers", "functions, sections"),
    entry("lives", "lives", "is in, exists"),
    entry("lies", "lies?", "is, are; is contiguous; between"),
    entry("nouns and verbs", "nouns(?: and verbs)?", "types and traits"),
    entry("told", "told", "reported, notified; distinguished for \"told apart\""),
    entry(
        "watch",
        "(?:who(?:ever)?|someone|nobody|those) watch(?:es)?|(?:is|be|not|are) watched|watching every",
        "observer, observed",
    ),
    entry("twin", "twins?", "scalar reference implementation, counterpart").except(&[(
        "bench/make_networks.py",
        "Twins is a network's name",
    )]),
    entry("dice", "dice", "random generator, `random`"),
    entry("sketch", "sketch(?:es)?", "graph builder"),
    entry("specimen", "specimens?", "sample"),
    entry("patience", "patience", "timeout").except(&[(
        "bench/RESULTS.md",
        "quotes the command that was run, with an option of that name",
    )]),
    // Layout of memory and work.
    entry("stretch", "stretch(?:es)?", "static subgraph; span for a part of an axis"),
    entry("gapped", "gapped", "with a row stride, `row_stride`"),
    entry("dense", "(?:lie|lies|lying|lay) dense(?:ly)?", "is contiguous"),
    entry("dense", "dense(?:ly)?", "contiguous, contiguously")
        .only_in(&["crates/kernels", "crates/cpu"])
        .unless("(?:lie|lies|lying|lay) dense|bert|mobilenet|dense layer"),
    entry("apart", "apart", "distinguished, separate, disjoint; a stride for \"so far apart\"").unless("apart from"),
    entry("summand", "summands?", "residual"),
    entry("worth", "worth a (?:second )?thread's while", "minimum work per thread"),
    entry(
        "turns",
        "(?:struct|enum|take|takes|took|give|gives|gave|the|a|next|its|their|no|whose) turns?|turn::",
        "slot",
    )
    .only_in(&["crates/driver", "crates/hal", "crates/reference", "crates/runtime"]),
    // Identifiers whose word is ordinary English in prose.
    entry("Finish", r"(?:enum|struct|use crate::graph::) finish|finish::[a-z]|set (?:finish|end)", "Epilogue")
        .only_in(&["crates/cpu", "crates/kernels"]),
    entry(
        "Way",
        r"(?:enum|struct|mod|path as) ways?|ways?::[a-z]+|(?:stands?|standing) in the way",
        "variant, path, obstacle",
    ),
    entry("under way", "under way|by way of", "running; through"),
    entry("Ends", r"(?:trait|impl|dyn) ends|mod ends|ends::", "endpoints; inputs and outputs"),
    entry("around", r"device around|search\.around", "with; split at an axis"),
    // People and amounts.
    entry("nobody", "nobody", "no one, the passive, unused"),
    entry("so many", "so many", "a number, this number of"),
    entry("as many", r"as many(?: [a-z]+)?", "the same number").unless(r"(?:twice|times|half) as many|as many [^.;:]*\bas\b|as many as"),
    // Spelling.
    entry(
        "-ise",
        "(?:re|de|un)?(?:quantis|normalis|initialis|synchronis|optimis|recognis|specialis|serialis|summaris|vectoris|generalis|minimis|maximis|organis|utilis)(?:e|ed|es|er|ers|ing|ation|ations)",
        "-ize: quantized, normalization",
    ),
];
