//! [`Argument`]: an argument of a node, and what kernels ask of it.

use super::{Graph, Node, Scratch, Value, Weights};
use crate::why::Why;
use nnhal_hal::FusedActivation;
use nnhal_kernels::Preparation;
use nnhal_ops::{Form, Parameter, Presence, Signature, Subject};
use std::borrow::Cow;
use std::ops::Deref;

/// An argument of a node that is an operation as the model has it. What a kernel asks of it is a result
/// whose error is the reason why the reference kernel runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Argument<'a> {
    value: &'a Value<'a>,
    node: &'a Node,
    place: Place,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Input(usize),
    Output(usize),
}

impl Graph<'_> {
    /// An input of a node, by position.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn input<'a>(&'a self, node: &'a Node, position: usize) -> Argument<'a> {
        let value = &self.values[node.inputs[position]];
        Argument { value, node, place: Place::Input(position) }
    }

    /// An output of a node, by position.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn output<'a>(&'a self, node: &'a Node, position: usize) -> Argument<'a> {
        let value = &self.values[node.outputs[position]];
        Argument { value, node, place: Place::Output(position) }
    }
}

/// The value.
impl<'a> Deref for Argument<'a> {
    type Target = Value<'a>;

    fn deref(&self) -> &Value<'a> {
        self.value
    }
}

impl<'a> Argument<'a> {
    /// Which argument of the operation it is.
    pub(crate) fn subject(self) -> Subject {
        let operation = self.node.place.operation_type;
        let forms = Signature::of(operation).map_or(&[][..], |it| it.forms);
        let name = |parameters: fn(&Form) -> &'static [Parameter], position: usize| {
            let mut names = forms.iter().filter_map(|form| {
                let up_to = || parameters(form).iter().take(position + 1);
                // What stands for several is followed by what has no fixed place.
                let repeated = up_to().find(|it| matches!(it.presence, Presence::Repeated(_)));
                repeated.or_else(|| parameters(form).get(position)).map(|it| it.name)
            });
            let first = names.next().unwrap_or_default();
            // Forms of several lengths may have different arguments in a place.
            if names.all(|other| other == first) { first } else { "" }
        };
        match self.place {
            Place::Input(position) => Subject::Input(position, name(|form| form.inputs, position)),
            Place::Output(position) => {
                Subject::Output(position, name(|form| form.outputs, position))
            }
        }
    }

    /// The reason that its type is.
    pub(crate) fn of_other_type(self, expected: &'static str) -> Why {
        Why::Type { subject: self.subject(), found: self.operand_type(), expected }
    }

    /// The reason that its number of axes is.
    pub(crate) fn of_other_rank(self, expected: &'static str) -> Why {
        Why::Rank { subject: self.subject(), found: self.dimensions.len(), expected }
    }

    /// The reason that it is if a length of it is 0.
    pub(crate) fn empty(self) -> Why {
        Why::Empty { subject: self.subject() }
    }

    /// Whether numbers of 8 bits with a zero point are signed. Others are not what is expected.
    pub(crate) fn is_signed(self, expected: &'static str) -> Result<bool, Why> {
        self.value.is_signed().ok_or_else(|| self.of_other_type(expected))
    }

    /// The stored numbers that an activation clamps quantized results to.
    pub(crate) fn stored_range(
        self,
        activation: FusedActivation,
        expected: &'static str,
    ) -> Result<(i32, i32), Why> {
        self.value.stored_range(activation).ok_or_else(|| self.of_other_type(expected))
    }

    /// Height, width and so on of NHWC images, or of what has four axes as they do.
    pub(crate) fn image(self) -> Result<[usize; 4], Why> {
        let lengths: Vec<usize> = self.lengths();
        lengths.try_into().map_err(|_| self.of_other_rank("4"))
    }

    /// The elements of a constant that holds floats.
    pub(crate) fn floats(self) -> Result<Cow<'a, [f32]>, Why> {
        self.expect_constant_floats()?;
        self.value.constant_floats().ok_or_else(|| self.unreadable().into())
    }

    /// The bytes of a constant, as the model has them.
    pub(crate) fn bytes(self) -> Result<&'a [u8], Why> {
        self.expect_constant()?;
        self.value.constant().ok_or_else(|| self.unreadable().into())
    }

    /// The bytes of a constant, to be packed; none of one that has been packed before.
    pub(crate) fn weights(
        self,
        preparation: &Preparation,
        scratch: &'a Scratch,
    ) -> Result<Weights<'a, u8>, Why> {
        self.expect_constant()?;
        Ok(self.value.weights(preparation, scratch)?)
    }

    /// The floats of a constant, to be packed; none of one that has been packed before.
    pub(crate) fn weight_floats(
        self,
        preparation: &Preparation,
        scratch: &'a Scratch,
    ) -> Result<Weights<'a, f32>, Why> {
        self.expect_constant_floats()?;
        Ok(self.value.weight_floats(preparation, scratch)?)
    }

    /// That it is a constant.
    pub(crate) fn expect_constant(self) -> Result<(), Why> {
        let not = || Why::NotConstant { subject: self.subject() };
        if self.value.is_constant() { Ok(()) } else { Err(not()) }
    }

    fn expect_constant_floats(self) -> Result<(), Why> {
        if !self.value.is_float() {
            return Err(self.of_other_type("floats"));
        }
        self.expect_constant()
    }
}
