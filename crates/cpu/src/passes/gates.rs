//! Activations that converters write as products of a number and a gate: GELU by TANH, Swish and
//! HARD_SWISH become one function each.
//!
//! The gate is a function of a polynomial of `x`; what is computed from it has the form `p + q * gate`,
//! with polynomials p and q of `x`. So the order of products and sums does not matter.
//!
//! Where it would, at the ends of the range, the functions give what they are defined as, and not what the products as they
//! are written come to: HARD_SWISH of 3e38 is 3e38, where 6 times that, before it is divided by 6, is infinite. Of minus
//! infinity both are NaN. HARD_SWISH is part of convolutions too, so that a variant for products would be a variant of all of
//! them.

use super::Readers;
use super::normalization::is_closed;
use crate::graph::{Graph, Node, ValueId, Work, producers};
use nnhal_hal::FusedActivation;
use nnhal_kernels::elementwise::{Step, Unary};
use nnhal_ops::AnyOperation;
use nnhal_ops::operations::arithmetic::Operator;
use nnhal_ops::operations::{Activation, HardSwish};
use std::collections::HashMap;

/// Coefficients, from that of the constant to that of the cube.
type Polynomial = [f64; 4];

const ZERO: Polynomial = [0.0; 4];
const X: Polynomial = [0.0, 1.0, 0.0, 0.0];

/// Operations that a value is looked through at most.
const MOST_STEPS: usize = 8;

/// How far numbers may be from those of the formula, in relation: they were rounded to 32 bits, some
/// of them after others.
const TOLERANCE: f64 = 4e-7;

pub(crate) fn run(graph: &mut Graph<'_>) {
    let producers = producers(graph);
    let readers = Readers::of(graph);
    let reads = graph.reads();
    for index in 0..graph.nodes.len() {
        let Some(found) = find(graph, &producers, &readers, index) else { continue };
        let is_inside = producers[found.x].is_some_and(|it| found.nodes.contains(&it));
        if is_inside || !is_closed(graph, &found.nodes, &reads) {
            continue;
        }
        super::replace(graph, &found.nodes, found.work, vec![found.x]);
    }
    super::remove_absorbed(graph);
}

struct Found {
    x: ValueId,
    work: Work,
    /// All nodes of the pattern; the last one computes the result.
    nodes: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Tanh,
    Logistic,
    Relu6,
}

fn find(
    graph: &Graph<'_>,
    producers: &[Option<usize>],
    readers: &Readers,
    index: usize,
) -> Option<Found> {
    let node = &graph.nodes[index];
    let gate = match &node.work {
        Work::Operation(AnyOperation::Activation(activation)) => match activation {
            Activation::Tanh => Gate::Tanh,
            Activation::Logistic => Gate::Logistic,
            Activation::Clamp(FusedActivation::Relu6) => Gate::Relu6,
            Activation::Clamp(_) => return None,
        },
        // An ADD may end with the gate.
        Work::Operation(AnyOperation::Arithmetic(sum))
            if sum.operator == Operator::Add && sum.activation == FusedActivation::Relu6 =>
        {
            Gate::Relu6
        }
        _ => return None,
    };
    if !graph.values[*node.outputs.first()?].is_float() {
        return None;
    }
    candidates(graph, producers, node).into_iter().find_map(|x| {
        let known = HashMap::new();
        let mut search = Search { graph, producers, x, nodes: Vec::new(), known };
        let inner = search.inner(index)?;
        let (inner_is, work) = match gate {
            Gate::Tanh => {
                let k = (2.0 / std::f64::consts::PI).sqrt();
                ([0.0, k, 0.0, k * 0.044_715], Work::Chain(vec![Step::Unary(Unary::GeluTanh)]))
            }
            Gate::Logistic => (X, Work::Chain(vec![Step::Unary(Unary::Swish)])),
            Gate::Relu6 => {
                ([3.0, 1.0, 0.0, 0.0], Work::Operation(AnyOperation::HardSwish(HardSwish)))
            }
        };
        if !is_near(inner, inner_is) {
            return None;
        }
        let wanted = match gate {
            Gate::Tanh => [[0.0, 0.5, 0.0, 0.0], [0.0, 0.5, 0.0, 0.0]],
            Gate::Logistic => [ZERO, X],
            Gate::Relu6 => [ZERO, [0.0, 1.0 / 6.0, 0.0, 0.0]],
        };
        search.take(index);
        // Forwards, from the gate to the result.
        let (mut value, mut form) = (node.outputs[0], [ZERO, [1.0, 0.0, 0.0, 0.0]]);
        for _ in 0..MOST_STEPS {
            let next = readers.only_reader(value)?;
            form = search.forward(next, value, form)?;
            search.take(next);
            value = graph.nodes[next].outputs[0];
            if is_near(form[0], wanted[0]) && is_near(form[1], wanted[1]) {
                let is_same = graph.values[value].dimensions == graph.values[x].dimensions;
                return is_same.then_some(Found { x, work, nodes: search.nodes });
            }
        }
        None
    })
}

/// Values that the gate may be a function of, the nearest ones first.
fn candidates(graph: &Graph<'_>, producers: &[Option<usize>], gate: &Node) -> Vec<ValueId> {
    let is_tensor = |value: ValueId| !graph.values[value].is_constant();
    let mut values: Vec<ValueId> = Vec::new();
    let add = |node: &Node, values: &mut Vec<ValueId>| {
        for input in node.inputs.iter().take(2) {
            if is_tensor(*input) && !values.contains(input) {
                values.push(*input);
            }
        }
    };
    add(gate, &mut values);
    let mut at = 0;
    while at < values.len() && at < MOST_STEPS {
        if let Some(node) = producers[values[at]]
            && matches!(
                graph.nodes[node].work,
                Work::Operation(AnyOperation::Arithmetic(_) | AnyOperation::Pow(_))
            )
        {
            add(&graph.nodes[node], &mut values);
        }
        at += 1;
    }
    values
}

fn is_near(found: Polynomial, wanted: Polynomial) -> bool {
    found
        .iter()
        .zip(wanted)
        .all(|(found, wanted)| (found - wanted).abs() <= TOLERANCE * wanted.abs())
}

fn sum(a: Polynomial, b: Polynomial, sign: f64) -> Polynomial {
    std::array::from_fn(|power| a[power] + sign * b[power])
}

/// `None` if it has a higher power than polynomials here have.
fn product(a: Polynomial, b: Polynomial) -> Option<Polynomial> {
    let mut result = ZERO;
    for (i, a) in a.into_iter().enumerate() {
        for (j, b) in b.into_iter().enumerate() {
            if a != 0.0 && b != 0.0 {
                *result.get_mut(i + j)? += a * b;
            }
        }
    }
    Some(result)
}

struct Search<'a, 'source> {
    graph: &'a Graph<'source>,
    producers: &'a [Option<usize>],
    x: ValueId,
    nodes: Vec<usize>,
    /// By value and steps that it was looked through at most. Values may be read twice each, which
    /// doubles the ways at every step.
    known: HashMap<(ValueId, usize), Option<Polynomial>>,
}

impl Search<'_, '_> {
    fn take(&mut self, node: usize) {
        if !self.nodes.contains(&node) {
            self.nodes.push(node);
        }
    }

    /// What the gate is a function of.
    fn inner(&mut self, gate: usize) -> Option<Polynomial> {
        let inputs = &self.graph.nodes[gate].inputs;
        let first = self.polynomial(inputs[0], MOST_STEPS)?;
        match &self.graph.nodes[gate].work {
            Work::Operation(AnyOperation::Arithmetic(_)) => {
                Some(sum(first, self.polynomial(inputs[1], MOST_STEPS)?, 1.0))
            }
            _ => Some(first),
        }
    }

    /// A value as a polynomial of `x`; the nodes that compute it become parts.
    fn polynomial(&mut self, value: ValueId, most_steps: usize) -> Option<Polynomial> {
        if value == self.x {
            return Some(X);
        }
        if let Some(known) = self.known.get(&(value, most_steps)) {
            return *known;
        }
        let found = self.computed(value, most_steps);
        self.known.insert((value, most_steps), found);
        found
    }

    /// The same, of a value that was not looked at before.
    fn computed(&mut self, value: ValueId, most_steps: usize) -> Option<Polynomial> {
        if let Some(constant) = self.scalar(value) {
            return Some([constant, 0.0, 0.0, 0.0]);
        }
        let index = self.producers[value].filter(|_| most_steps > 0)?;
        let node = &self.graph.nodes[index];
        let [a, b] = [*node.inputs.first()?, *node.inputs.get(1)?];
        let result = match &node.work {
            Work::Operation(AnyOperation::Arithmetic(arithmetic))
                if arithmetic.activation == FusedActivation::None =>
            {
                let a = self.polynomial(a, most_steps - 1)?;
                let b = self.polynomial(b, most_steps - 1)?;
                match arithmetic.operator {
                    Operator::Add => sum(a, b, 1.0),
                    Operator::Sub => sum(a, b, -1.0),
                    Operator::Mul => product(a, b)?,
                    Operator::Div => quotient(a, b)?,
                }
            }
            Work::Operation(AnyOperation::Pow(_)) => {
                let (a, power) = (self.polynomial(a, most_steps - 1)?, self.scalar(b)?);
                let square = product(a, a)?;
                if power == 2.0 {
                    square
                } else if power == 3.0 {
                    product(square, a)?
                } else {
                    return None;
                }
            }
            _ => return None,
        };
        self.take(index);
        Some(result)
    }

    /// What a node makes of `p + q * gate`, which `value` is.
    fn forward(
        &mut self,
        node: usize,
        value: ValueId,
        [p, q]: [Polynomial; 2],
    ) -> Option<[Polynomial; 2]> {
        let Work::Operation(AnyOperation::Arithmetic(arithmetic)) = &self.graph.nodes[node].work
        else {
            return None;
        };
        let [a, b] = [self.graph.nodes[node].inputs[0], self.graph.nodes[node].inputs[1]];
        if arithmetic.activation != FusedActivation::None || a == b {
            return None;
        }
        let is_first = a == value;
        let other = self.polynomial(if is_first { b } else { a }, MOST_STEPS)?;
        Some(match arithmetic.operator {
            Operator::Add => [sum(p, other, 1.0), q],
            Operator::Sub if is_first => [sum(p, other, -1.0), q],
            Operator::Sub => [sum(other, p, -1.0), sum(ZERO, q, -1.0)],
            Operator::Mul => [product(p, other)?, product(q, other)?],
            Operator::Div if is_first => [quotient(p, other)?, quotient(q, other)?],
            Operator::Div => return None,
        })
    }

    /// A constant that is one number.
    fn scalar(&self, value: ValueId) -> Option<f64> {
        self.graph.values[value].constant_float().map(f64::from)
    }
}

/// By a number.
fn quotient(a: Polynomial, b: Polynomial) -> Option<Polynomial> {
    let is_number = b[1..].iter().all(|coefficient| *coefficient == 0.0) && b[0] != 0.0;
    is_number.then(|| a.map(|coefficient| coefficient / b[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_multiply_up_to_the_cube() {
        let square = product(X, X).unwrap();
        assert_eq!(product(square, X).unwrap(), [0.0, 0.0, 0.0, 1.0]);
        assert_eq!(product(square, square), None);
        assert_eq!(
            product([1.0, 2.0, 0.0, 0.0], [3.0, -1.0, 0.0, 0.0]).unwrap(),
            [3.0, 5.0, -2.0, 0.0]
        );
        assert_eq!(quotient(X, [2.0, 0.0, 0.0, 0.0]).unwrap(), [0.0, 0.5, 0.0, 0.0]);
        assert_eq!(quotient(X, X), None);
    }

    #[test]
    fn numbers_of_32_bits_are_near_those_of_the_formula() {
        let rounded = [0.0, 0.797_884_6_f32, 0.0, 0.797_884_6_f32 * 0.044_715].map(f64::from);
        let k = (2.0 / std::f64::consts::PI).sqrt();
        assert!(is_near(rounded, [0.0, k, 0.0, k * 0.044_715]));
        assert!(!is_near([0.0, 0.8, 0.0, 0.8 * 0.044_715], [0.0, k, 0.0, k * 0.044_715]));
    }
}
