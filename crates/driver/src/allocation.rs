//! The checks of a wish for a buffer, and its making (contract: ALLOC-2 to ALLOC-7).

use crate::buffers::{self, Direction, Role};
use crate::prepared::Prepared;
use nnhal_hal::{Buffer, BufferDescription, BufferRole, Client, Error, Operand, PreparedModel};
use nnhal_ops::Shape;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// What is wrong with a wish for a buffer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AllocationError {
    /// No prepared models (contract: ALLOC-2).
    #[error("a buffer is allocated for prepared models, but none is given")]
    NoPreparedModels,
    /// No roles (contract: ALLOC-2).
    #[error("a buffer is allocated for roles, but none is given")]
    NoRoles,
    /// A prepared model of another device (contract: ALLOC-2).
    #[error("prepared model {model} was not made by this device")]
    ForeignModel {
        /// Its index.
        model: usize,
    },
    /// Prepared models of two clients (contract: SEC-4).
    #[error("prepared model {model} is of another client than those before it")]
    OtherClient {
        /// Its index.
        model: usize,
    },
    /// A role of a prepared model that is not given (contract: ALLOC-2).
    #[error("{role} is of prepared model {found}, but there are {models}")]
    NoSuchModel {
        /// Input or output, and its position in the description.
        role: RoleName,
        /// The model it names.
        found: u32,
        /// The number of prepared models in the description.
        models: usize,
    },
    /// A role as an argument that the model does not have (contract: ALLOC-2).
    #[error("{role} is argument {found}, but the model has {arguments}")]
    NoSuchArgument {
        /// Input or output, and its position in the description.
        role: RoleName,
        /// The argument it names.
        found: u32,
        /// How many the model has.
        arguments: usize,
    },
    /// A frequency outside (0, 1] (contract: ALLOC-2).
    #[error("{role} has frequency {found}, expected above 0 and at most 1")]
    Frequency {
        /// Input or output, and its position in the description.
        role: RoleName,
        /// Its frequency.
        found: f32,
    },
    /// A role that stands twice (contract: ALLOC-3).
    #[error("{role} is the same as another one")]
    Twice {
        /// Input or output, and its position in the description.
        role: RoleName,
    },
    /// Roles of operands that differ in more than their shape (contract: ALLOC-4).
    #[error("{role} is of an operand that differs from the first role's in its {what}")]
    Operands {
        /// Input or output, and its position in the description.
        role: RoleName,
        /// In what it differs.
        what: &'static str,
    },
    /// Shapes that cannot be combined (contract: ALLOC-5).
    #[error("{role} has shape {found}, the others and the description say {expected}")]
    Shapes {
        /// Input or output, and its position in the description.
        role: RoleName,
        /// Its shape.
        found: Shape,
        /// What is known by then.
        expected: Shape,
    },
    /// Dimensions for a scalar (contract: ALLOC-5).
    #[error("the roles are scalars, but the description has dimensions {found:?}")]
    ScalarDimensions {
        /// The description's dimensions.
        found: Vec<u32>,
    },
}

impl From<AllocationError> for Error {
    fn from(error: AllocationError) -> Self {
        Self::invalid(error)
    }
}

/// Which role of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleName {
    /// An input role, by its index.
    Input(usize),
    /// An output role, by its index.
    Output(usize),
}

impl fmt::Display for RoleName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(index) => write!(formatter, "input role {index}"),
            Self::Output(index) => write!(formatter, "output role {index}"),
        }
    }
}

/// Checks a description and makes the buffer. `is_ours` tells whether a model is of this device.
pub(crate) fn allocate(
    description: &BufferDescription,
    is_ours: impl Fn(&Prepared) -> bool,
) -> nnhal_hal::Result<Arc<dyn Buffer>> {
    let models = own_models(&description.prepared_models, is_ours)?;
    let client = one_client(&models)?;
    let wish = Wish::new(description, &models)?;
    let operand_type = wish.operand.operand_type;
    if operand_type.element_size().is_none_or(|size| size == 0) {
        // Allowed to ask, but of a vendor's types no one here knows how long they are (ALLOC-6).
        return Err(Error::failure(format!("buffers of {operand_type} are not supported")));
    }
    let size = match wish.shape.to_known() {
        None => None,
        Some(_) => {
            let element = operand_type.element_size().map_or(0, u64::from);
            let size = wish.shape.element_count().and_then(|count| count.checked_mul(element));
            let fits = size.filter(|size| u32::try_from(*size).is_ok());
            Some(fits.ok_or_else(|| {
                Error::failure(format!("{operand_type} {} exceeds 2^32 - 1 bytes", wish.shape))
            })?)
        }
    };
    let Wish { operand, shape, roles } = wish;
    buffers::allocate(models[0].owner().clone(), client, operand, shape, roles, size)
}

/// The client that all of the models belong to, of which there is one at least.
fn one_client(models: &[&Prepared]) -> Result<Client, AllocationError> {
    let first = models.first().ok_or(AllocationError::NoPreparedModels)?.client();
    match models.iter().position(|model| !model.client().is_same(&first)) {
        None => Ok(first),
        Some(model) => Err(AllocationError::OtherClient { model }),
    }
}

/// A description that makes sense.
struct Wish {
    operand: Operand,
    shape: Shape,
    roles: BTreeSet<Role>,
}

impl Wish {
    fn new(description: &BufferDescription, models: &[&Prepared]) -> Result<Self, AllocationError> {
        let inputs = description.input_roles.iter().enumerate();
        let outputs = description.output_roles.iter().enumerate();
        let all = inputs
            .map(|(index, role)| (RoleName::Input(index), role))
            .chain(outputs.map(|(index, role)| (RoleName::Output(index), role)));
        let mut wish: Option<Self> = None;
        for (name, role) in all {
            let (role, operand) = resolve(name, role, models)?;
            let wish = match &mut wish {
                Some(wish) => wish,
                None => wish.insert(Self::first(operand, &description.dimensions)?),
            };
            wish.add(name, role, operand)?;
        }
        wish.ok_or(AllocationError::NoRoles)
    }

    /// The description's dimensions, for operands of this one's type.
    fn first(operand: &Operand, dimensions: &[u32]) -> Result<Self, AllocationError> {
        let shape = if !operand.operand_type.is_scalar() {
            Shape::of_model(dimensions)
        } else if dimensions.is_empty() {
            Shape::known([])
        } else {
            return Err(AllocationError::ScalarDimensions { found: dimensions.to_vec() });
        };
        Ok(Self { operand: operand.clone(), shape, roles: BTreeSet::new() })
    }

    fn add(
        &mut self,
        name: RoleName,
        role: Role,
        operand: &Operand,
    ) -> Result<(), AllocationError> {
        if let Some(what) = difference(&self.operand, operand) {
            return Err(AllocationError::Operands { role: name, what });
        }
        let found = Shape::declared(operand);
        self.shape = self.shape.merge(&found).ok_or_else(|| {
            let expected = self.shape.clone();
            AllocationError::Shapes { role: name, found, expected }
        })?;
        if self.roles.insert(role) { Ok(()) } else { Err(AllocationError::Twice { role: name }) }
    }
}

fn own_models(
    models: &[Arc<dyn PreparedModel>],
    is_ours: impl Fn(&Prepared) -> bool,
) -> Result<Vec<&Prepared>, AllocationError> {
    if models.is_empty() {
        return Err(AllocationError::NoPreparedModels);
    }
    let own = models.iter().enumerate().map(|(index, model)| {
        let prepared = Prepared::of(&**model).filter(|prepared| is_ours(prepared));
        prepared.ok_or(AllocationError::ForeignModel { model: index })
    });
    own.collect()
}

fn resolve<'a>(
    name: RoleName,
    role: &BufferRole,
    models: &[&'a Prepared],
) -> Result<(Role, &'a Operand), AllocationError> {
    let model = models.get(role.model_index as usize).ok_or(AllocationError::NoSuchModel {
        role: name,
        found: role.model_index,
        models: models.len(),
    })?;
    let (direction, arguments) = match name {
        RoleName::Input(_) => (Direction::Input, model.interface().inputs()),
        RoleName::Output(_) => (Direction::Output, model.interface().outputs()),
    };
    let index = role.io_index as usize;
    let operand = arguments.get(index).ok_or(AllocationError::NoSuchArgument {
        role: name,
        found: role.io_index,
        arguments: arguments.len(),
    })?;
    // So written, a frequency that is no number is refused.
    if !(role.frequency > 0.0 && role.frequency <= 1.0) {
        return Err(AllocationError::Frequency { role: name, found: role.frequency });
    }
    Ok((Role { model: model.interface().number(), direction, index }, operand))
}

/// In what two operands differ that could not share a buffer.
fn difference(one: &Operand, other: &Operand) -> Option<&'static str> {
    if one.operand_type != other.operand_type {
        Some("type")
    } else if one.scale.to_bits() != other.scale.to_bits() {
        Some("scale")
    } else if one.zero_point != other.zero_point {
        Some("zero point")
    } else if one.extra_params != other.extra_params {
        Some("extra parameters")
    } else {
        None
    }
}
