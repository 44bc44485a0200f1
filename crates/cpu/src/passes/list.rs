//! [`PASSES`]: all passes in their order, and [`Passes`], those of them that run.

use super::{
    activations, attention, chains, convolutions, counters, factors, gates, grouped, layout,
    matmul, maxima, means, normalization, padding, parts, residuals, separable, softmax, tables,
    transposes, views,
};
use crate::graph::Graph;
use nnhal_driver::{Budget, EngineError};
use nnhal_kernels::InstructionSet;
use std::fmt;
use std::num::NonZero;
use std::str::FromStr;

/// A rewriting of the graph into one that computes the same with less work.
#[derive(Debug)]
pub(crate) struct Pass {
    /// What settings, files and spans call it.
    pub(crate) name: &'static str,
    /// What it does, in a sentence.
    pub(crate) meaning: &'static str,
    pub(crate) run: Run,
}

#[derive(Debug)]
pub(crate) enum Run {
    /// Takes a time that grows with the graph as the graph does.
    Short(fn(&mut Graph<'_>)),
    /// May copy constants, and asks the budget.
    Long(fn(&mut Graph<'_>, &Budget) -> Result<(), EngineError>),
    /// As `Short`; what is worth it depends on the instruction set and on how many threads share the steps.
    ByProcessor(fn(&mut Graph<'_>, InstructionSet, NonZero<usize>)),
}

/// All of them, in an order in which each finds what the ones before have made.
pub(crate) static PASSES: [Pass; 24] = [
    Pass {
        name: "views",
        meaning: "Operations that change nothing but lengths cost nothing: RESHAPE, SQUEEZE, EXPAND_DIMS.",
        run: Run::Short(views::run),
    },
    Pass {
        name: "counters",
        meaning: "A WHILE that counts between constants takes no steps to do so.",
        run: Run::Short(counters::run),
    },
    Pass {
        name: "layout",
        meaning: "NCHW images are computed as NHWC, with as few TRANSPOSEs as can be.",
        run: Run::Long(layout::run),
    },
    Pass {
        name: "transposes",
        meaning: "TRANSPOSEs that follow each other, with views and parts between them, are one copy, or none.",
        run: Run::Short(transposes::run),
    },
    Pass {
        name: "grouped",
        meaning: "GROUPED_CONV_2D with one channel in each group is DEPTHWISE_CONV_2D.",
        run: Run::Long(grouped::run),
    },
    Pass {
        name: "means",
        meaning: "DEQUANTIZE, MEAN, QUANTIZE are one step.",
        run: Run::Short(means::run),
    },
    Pass {
        name: "convolutions",
        meaning: "All kinds of convolutions, and FULLY_CONNECTED, are one kind of node.",
        run: Run::Short(convolutions::run),
    },
    Pass {
        name: "views-of-convolutions",
        meaning: "A convolution writes the view that alone reads its result.",
        run: Run::Short(views::absorb),
    },
    Pass {
        name: "gates",
        meaning: "GELU, Swish and HARD_SWISH that are written as products are one function each.",
        run: Run::Short(gates::run),
    },
    Pass {
        name: "factors",
        meaning: "Queries of an attention are scaled, not its keys, where there are fewer of them.",
        run: Run::Short(factors::run),
    },
    Pass {
        name: "matmul",
        meaning: "Products of computed matrices read and write through what only moves elements.",
        run: Run::Short(matmul::run),
    },
    Pass {
        name: "normalization",
        meaning: "Layer normalization that is written in single operations is one step.",
        run: Run::Short(normalization::run),
    },
    Pass {
        name: "padding",
        meaning: "PAD with zeros becomes the padding of the convolution that reads it.",
        run: Run::Short(padding::run),
    },
    Pass {
        name: "activations",
        meaning: "An activation becomes the epilogue of what computes its input.",
        run: Run::Short(activations::run),
    },
    Pass {
        name: "residuals",
        meaning: "ADD becomes the epilogue of the convolution that computes one of its operands.",
        run: Run::Short(residuals::run),
    },
    Pass {
        name: "activations-of-residuals",
        meaning: "As `activations`, behind the sums that `residuals` took.",
        run: Run::Short(activations::run),
    },
    Pass {
        name: "maxima",
        meaning: "Functions that never fall are computed behind MAX_POOL_2D and REDUCE_MAX, where there are fewer numbers.",
        run: Run::Short(maxima::run),
    },
    Pass {
        name: "chains",
        meaning: "Operations on floats, element by element, that follow each other are one step.",
        run: Run::Short(chains::run),
    },
    Pass {
        name: "softmax",
        meaning: "SOFTMAX takes the factor and the mask of an attention along.",
        run: Run::Short(softmax::run),
    },
    Pass {
        name: "attention",
        meaning: "An attention with many scores is one step, by blocks of queries.",
        run: Run::Short(attention::run),
    },
    Pass {
        name: "tables",
        meaning: "Functions of 8-bit integers, element by element, are tables; those that follow each other, or are of one value and meet, are one.",
        run: Run::Short(tables::run),
    },
    Pass {
        name: "maxima-of-tables",
        meaning: "As `maxima`, of tables.",
        run: Run::Short(maxima::run_of_tables),
    },
    Pass {
        name: "separable",
        meaning: "Depthwise and 1x1 convolutions of floats that follow each other are computed strip by strip where images are large or threads share them.",
        run: Run::ByProcessor(separable::run),
    },
    Pass {
        name: "parts",
        meaning: "SPLIT, SLICE and STRIDED_SLICE of elements that follow each other, and CAST to the same type, cost nothing.",
        run: Run::Short(parts::run),
    },
];

/// Which passes run. What those that do not run would have changed is computed in slower steps, some by
/// reference kernels, with the same results but for rounding.
///
/// ```
/// use nnhal_cpu::Passes;
///
/// let passes: Passes = Passes::ALL.without("chains").unwrap();
/// assert!(!passes.contains("chains") && passes.contains("tables"));
/// assert_eq!(Passes::names().count(), 24);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Passes(u32);

/// The name of a pass that there is not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no pass {0:?}")]
pub struct NoSuchPass(pub String);

impl Passes {
    /// All.
    pub const ALL: Self = Self((1 << PASSES.len()) - 1);

    /// None at all.
    pub const NONE: Self = Self(0);

    /// The names of all that there are, in the order in which they run.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PASSES.iter().map(|pass| pass.name)
    }

    /// The same without one.
    ///
    /// # Errors
    /// There is no such pass.
    pub fn without(self, name: &str) -> Result<Self, NoSuchPass> {
        Ok(Self(self.0 & !Self::bit(name)?))
    }

    /// The same with one.
    ///
    /// # Errors
    /// There is no such pass.
    pub fn with(self, name: &str) -> Result<Self, NoSuchPass> {
        Ok(Self(self.0 | Self::bit(name)?))
    }

    /// Whether a pass is among them; never one that there is not.
    pub fn contains(self, name: &str) -> bool {
        Self::bit(name).is_ok_and(|bit| self.0 & bit != 0)
    }

    fn bit(name: &str) -> Result<u32, NoSuchPass> {
        let at = PASSES.iter().position(|pass| pass.name == name);
        at.map(|at| 1 << at).ok_or_else(|| NoSuchPass(name.to_owned()))
    }
}

/// Those that do not run, separated by commas.
impl fmt::Display for Passes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let off: Vec<_> = Self::names().filter(|name| !self.contains(name)).collect();
        formatter.write_str(&off.join(","))
    }
}

/// Of the names of those that do not run, separated by commas; or of `all`.
impl FromStr for Passes {
    type Err = NoSuchPass;

    fn from_str(off: &str) -> Result<Self, NoSuchPass> {
        if off.trim() == "all" {
            return Ok(Self::NONE);
        }
        let mut names = off.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.try_fold(Self::ALL, |passes, name| passes.without(name))
    }
}

/// The table of passes in this crate's README.
pub fn passes_table() -> String {
    let mut text = String::from("| pass | what it does |\n|---|---|\n");
    for Pass { name, meaning, .. } in &PASSES {
        text += &format!("| `{name}` | {meaning} |\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_switched_off_is_written_as_it_is_read() {
        let passes = Passes::ALL.without("views").and_then(|it| it.without("tables")).unwrap();
        assert_eq!(passes.to_string(), "views,tables");
        assert_eq!("views, tables".parse(), Ok(passes));
        assert_eq!("".parse(), Ok(Passes::ALL));
        assert_eq!("all".parse(), Ok(Passes::NONE));
        assert_eq!(Passes::NONE.to_string().parse(), Ok(Passes::NONE));
        assert_eq!("views,vews".parse::<Passes>(), Err(NoSuchPass("vews".to_owned())));
    }

    #[test]
    fn names_of_passes_are_names_of_files() {
        let is_plain = |name: &str| name.chars().all(|it| it.is_ascii_lowercase() || it == '-');
        let names: std::collections::BTreeSet<_> = Passes::names().collect();
        assert_eq!(names.len(), PASSES.len(), "no two have one name");
        assert!(names.into_iter().all(is_plain));
    }
}
