//! [`Answer`]: what a person or a program is shown.

use super::REFERENCE;
use crate::commands::{shape, shortened};
use nnhal::DataType;
use nnhal::compare::{Compared, Comparison, Differs, Responsible, StepCompared};
use serde_json::{Value, json};

/// All that was found out.
pub struct Answer {
    /// The device that is right, and the one that is judged.
    pub devices: [String; 2],
    pub comparison: Comparison,
    /// If they differ: a device, and its step.
    pub responsible: Option<(String, Responsible)>,
    pub winograd: Option<Winograd>,
    pub nearest: Option<Nearest>,
}

/// The largest difference of outputs, as a share of their largest magnitude.
pub struct Winograd {
    /// Whether the outputs agree without.
    pub agree: bool,
    pub with: f64,
    pub without: f64,
}

/// How far the outputs of each device are from those of `nnhal-reference`, likewise.
pub struct Nearest {
    pub distances: [f64; 2],
}

impl Answer {
    /// Whether a step computes something else from the same values.
    pub fn is_step_wrong(&self) -> bool {
        matches!(self.responsible, Some((_, Responsible::Step { .. })))
    }

    /// For people: outputs first.
    pub fn text(&self) -> String {
        let [judge, judged] = &self.devices;
        let Comparison { outputs, steps, .. } = &self.comparison;
        let mut text = String::new();
        if self.comparison.agree() {
            let count = outputs.len();
            let but = if self.is_step_wrong() { ", but a step on the way is wrong" } else { "" };
            let all = if count == 1 { "the output" } else { &format!("all {count} outputs") };
            text += &format!("{judge} and {judged} agree in {all}{but}\n");
        } else {
            let count = outputs.iter().filter(|it| it.differs.is_some()).count();
            text +=
                &format!("{judge} and {judged} differ in {count} of {} outputs\n", outputs.len());
        }
        for output in outputs {
            text += &described("output", output);
        }
        if let Some((device, responsible)) = &self.responsible {
            text += &responsible_text(device, responsible);
        }
        text += &match &self.winograd {
            None => "Winograd's transforms: none are used\n".to_owned(),
            Some(Winograd { agree, with, without }) => {
                let answer = if *agree { "they agree" } else { "they differ" };
                format!(
                    "without Winograd's transforms {answer}: off by {without:.1e} of the largest \
                     magnitude instead of {with:.1e}\n"
                )
            }
        };
        text += &match &self.nearest {
            None => {
                "both are equally near to a run in double precision: they are the same\n".into()
            }
            Some(nearest) => nearest.text(&self.devices),
        };
        let beyond = steps.iter().filter(|step| step.compared.differs.is_some()).count();
        text += &format!("{} results on the way were compared", steps.len());
        if beyond > 0 {
            text += &format!(", {beyond} differ by more than rounding explains");
        }
        text + "\n"
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let Comparison { outputs, steps, .. } = &self.comparison;
        let responsible = self.responsible.as_ref();
        let first = steps.iter().find(|step| step.compared.differs.is_some());
        json!({
            "agree": self.comparison.agree() && !self.is_step_wrong(),
            "outputs_agree": self.comparison.agree(),
            "devices": self.devices,
            "outputs": outputs.iter().map(compared_json).collect::<Vec<_>>(),
            "compared": outputs.len() + steps.len(),
            "first_step_that_differs": first.map(step_json),
            "responsible": responsible.map(|(device, found)| responsible_json(device, found)),
            "without_winograd": self.winograd.as_ref().map(|it| json!({
                "agree": it.agree,
                "of_magnitude": finite(it.without),
                "of_magnitude_with": finite(it.with),
            })),
            "nearer": self.nearest.as_ref().map(|Nearest { distances: [first, second] }| json!({
                "to": "nnhal-reference: sums in double precision, one rounding for each operation",
                "device": match first.partial_cmp(second) {
                    Some(std::cmp::Ordering::Less) => Some(&self.devices[0]),
                    Some(std::cmp::Ordering::Greater) => Some(&self.devices[1]),
                    _ => None,
                },
                "of_magnitude": [finite(*first), finite(*second)],
            })),
        })
    }
}

impl Nearest {
    fn text(&self, [judge, judged]: &[String; 2]) -> String {
        const WHAT: &str = "adds in double precision and rounds once for each operation";
        let [first, second] = self.distances;
        let (nearer, other, off) =
            if first <= second { (judge, judged, second) } else { (judged, judge, first) };
        if first == second {
            return format!("both are as near to nnhal-reference, which {WHAT}: {first:.1e}\n");
        }
        if nearer == REFERENCE {
            return format!(
                "nearer to a run in double precision is {REFERENCE}, which {WHAT}: {other} is off by \
                 {off:.1e} of the largest magnitude\n"
            );
        }
        let near = first.min(second);
        format!(
            "nearer to a run in double precision is {nearer}: off from {REFERENCE}, which {WHAT}, by \
             {near:.1e} of the largest magnitude, {other} by {off:.1e}\n"
        )
    }
}

/// JSON has no infinity.
fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}

/// A tensor, how far off it is, and what is allowed.
fn described(what: &str, it: &Compared) -> String {
    let data_type = it.data_type.map_or("another type".to_owned(), |it: DataType| it.to_string());
    let mut text = format!("  {what} {} ({data_type} {}): ", shortened(&it.name), shape(&it.shape));
    match (&it.differs, it.distance) {
        (Some(differs), _) => text += &format!("{differs}; "),
        (None, Some(distance)) if distance.largest == 0.0 => text += "the same; ",
        (None, Some(distance)) => {
            let (off, share) = (distance.largest, distance.of_magnitude());
            text += &format!("off by {off:.1e}, {share:.1e} of the largest magnitude; ");
        }
        (None, None) => {}
    }
    text + &format!("allowed {}\n", it.allowed)
}

fn responsible_text(device: &str, responsible: &Responsible) -> String {
    let place = |step: &StepCompared| {
        let origin = step.origin.as_ref();
        format!("{}{}", step.place, origin.map_or(String::new(), |it| format!(", from {it}")))
    };
    match responsible {
        Responsible::Step { step, operations } => {
            let place = place(step);
            let computed = match operations {
                1 => String::new(),
                count => format!(" ({count} operations computed as one)"),
            };
            format!(
                "responsible is {place}{computed}: from the same values {device} computes something \
                 else\n{}",
                described(&format!("result {}", step.output), &step.compared)
            )
        }
        Responsible::NoStep { judged, not_judged, worst } => {
            let mut text = format!(
                "no single step of {device} is responsible: each of {judged} computes what it should \
                 from what it is given, and small differences add up\n"
            );
            if *not_judged > 0 {
                text += &format!("  {not_judged} steps could not be judged alone\n");
            }
            if let Some(step) = worst {
                text += &format!("  the largest comes from {}\n", place(step));
                text += &described(&format!("result {}", step.output), &step.compared);
            }
            text
        }
        Responsible::NotShown => {
            format!("{device} does not show results on the way: no step can be named\n")
        }
    }
}

fn compared_json(it: &Compared) -> Value {
    let difference = match &it.differs {
        Some(Differs::Elements(difference)) => Some(difference),
        _ => None,
    };
    json!({
        "name": it.name,
        "type": it.data_type.map(|it| it.to_string()),
        "shape": it.shape,
        "agree": it.differs.is_none(),
        "off": it.distance.and_then(|it| finite(it.largest)),
        "rms": it.distance.and_then(|it| finite(it.rms)),
        "of_magnitude": it.distance.and_then(|it| finite(it.of_magnitude())),
        "allowed": it.allowed.tolerance.absolute,
        "allowed_relative": it.allowed.tolerance.relative,
        "reason": it.allowed.to_string(),
        "what": it.differs.as_ref().map(ToString::to_string),
        "element": difference.map(|it| it.index),
        "expected": difference.and_then(|it| finite(it.expected)),
        "found": difference.and_then(|it| finite(it.found)),
    })
}

/// A step with what was found of its result.
pub fn step_json(step: &StepCompared) -> Value {
    json!({
        "subgraph": step.place.subgraph.to_string(),
        "operation": step.place.index,
        "operation_type": step.place.operation_name(),
        "origin": step.origin.as_ref().map(ToString::to_string),
        "output": step.output,
        "result": compared_json(&step.compared),
    })
}

fn responsible_json(device: &str, responsible: &Responsible) -> Value {
    match responsible {
        Responsible::Step { step, operations } => json!({
            "device": device,
            "step": step_json(step),
            "operations": operations,
        }),
        Responsible::NoStep { judged, not_judged, worst } => json!({
            "device": device,
            "step": Value::Null,
            "judged": judged,
            "not_judged": not_judged,
            "worst": worst.as_ref().map(step_json),
        }),
        Responsible::NotShown => json!({ "device": device, "step": Value::Null, "judged": 0 }),
    }
}
