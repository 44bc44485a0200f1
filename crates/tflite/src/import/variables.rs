//! Resource variables: VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE and CALL_ONCE.
//!
//! An execution of the HAL keeps nothing. So a variable is a value that the import follows from operator to
//! operator in their order: what was assigned last is what is read next. Its value at first comes from the
//! subgraph that CALL_ONCE names, which is evaluated here; its value at the end becomes an output of the model, and
//! is an input of the next execution ([`crate::State`]). Subgraphs of IF and WHILE take the variables that they
//! use as further arguments, and give them back as further results; one whose operators are imported in the place of
//! the operator that runs it goes on with the variables as they are there.
//!
//! A handle is known at import: it is the variable's index, as an integer that is folded like others.

use super::array::Array;
use super::tensor::{Element, List};
use super::{BYTES_OF_A_PART, GraphImporter, Graphs, Imported, MOST_NESTED, Stop};
use crate::description;
use crate::error::{ImportError, Reason};
use crate::file::{File, Graph, Operator, OperatorKind};
use crate::schema::{BuiltinOperator as B, BuiltinOptions2Ref, BuiltinOptionsRef, TensorType};
use crate::{State, TensorDescription};
use nnhal_hal::builder::PoolId;
use nnhal_hal::{OperandId, OperandSpec};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

const NO_FIRST_VALUE: &str =
    "is used, and no CALL_ONCE of the main subgraph gives it a first value";

/// The variables of a file, by index.
#[derive(Debug, Default)]
pub(super) struct Variables {
    /// By container and name.
    indexes: HashMap<(String, String), usize>,
    all: Vec<Variable>,
    /// By subgraph and what its handles stand for: the variables that it uses.
    used: HashMap<UseOf, Rc<BTreeSet<usize>>>,
    /// The subgraphs that CALL_ONCE called.
    initializers: HashSet<usize>,
}

/// A subgraph, and by argument the variable that it is a handle of.
type UseOf = (usize, Vec<Option<usize>>);

#[derive(Debug)]
struct Variable {
    name: String,
    /// The first tensor that a READ_VARIABLE gives: its subgraph and index. It says what the bytes mean.
    read: Option<((usize, usize), Imported<OperandSpec>)>,
    /// What CALL_ONCE assigns, or why that is not known; and the subgraph that it calls.
    initial: Option<(Imported<Initial>, usize)>,
}

/// The value of a variable before the first execution.
#[derive(Debug)]
struct Initial {
    /// Subgraph and index of the tensor that was assigned.
    tensor: (usize, usize),
    spec: OperandSpec,
    shape: Vec<u32>,
    bytes: Vec<u8>,
}

/// A variable within a subgraph.
#[derive(Debug)]
pub(super) struct Followed {
    /// Its value by now.
    operand: OperandId,
    /// What every value of it looks like.
    spec: OperandSpec,
    shape: Vec<u32>,
}

/// By variable.
pub(super) type FollowedVariables = BTreeMap<usize, Followed>;

/// What IF and WHILE hand to a subgraph beside its arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Passed {
    /// In the order of the further inputs.
    pub(super) variables: Vec<usize>,
    /// Whether the subgraph gives them back as further outputs.
    pub(super) are_given_back: bool,
    /// Whether the subgraph takes, before its inputs, the index by which it was chosen.
    pub(super) are_indexed: bool,
    /// The lengths of its outputs, by place, where nothing else says them: what a loop's variables have, which keep them.
    pub(super) lengths: Vec<Option<Vec<u32>>>,
    /// What its inputs are, by place, where any are lists of tensors.
    pub(super) lists: Vec<Option<List>>,
}

pub(super) fn is_handle(graph: &Graph<'_>, tensor: usize) -> bool {
    graph.tensors[tensor].type_code == TensorType::Resource as i8
}

impl Variables {
    /// Finds the variables of a file, and evaluates what they are at first.
    pub(super) fn of<'a>(file: &File<'a>, pools: &Rc<[PoolId]>) -> Result<Self, ImportError> {
        let mut variables = Self::default();
        let is_handled = |operator: &Operator<'_>| operator.code.kind.is(B::VarHandle);
        if !file.graphs.iter().any(|graph| graph.operators.iter().any(is_handled)) {
            return Ok(variables);
        }
        for (index, graph) in file.graphs.iter().enumerate() {
            let mut handles = HashMap::new();
            let importer = GraphImporter::new(file, graph, pools);
            for operator in &graph.operators {
                let first = operator.inputs.first().copied().flatten();
                if is_handled(operator) {
                    // Where the handle cannot be read, the import of the operator says so.
                    let Ok(variable) = variables.index(file, operator) else { continue };
                    handles.extend(operator.outputs.first().map(|output| (*output, variable)));
                } else if operator.code.kind.is(B::ReadVariable)
                    && let Some(variable) = first.and_then(|it| handles.get(&it))
                    && let Some(output) = operator.outputs.first()
                {
                    let spec = || importer.spec_with(*output, Vec::new());
                    let read = &mut variables.all[*variable].read;
                    read.get_or_insert_with(|| ((index, *output), spec()));
                }
            }
        }
        let main = &file.graphs[file.main];
        for operator in main.operators.iter().filter(|it| it.code.kind.is(B::CallOnce)) {
            if let Ok(index) = initializer(file, operator) {
                variables.initialize(file, pools, index)?;
            }
        }
        Ok(variables)
    }

    /// The index of the variable that a VAR_HANDLE names.
    fn index(&mut self, file: &File<'_>, operator: &Operator<'_>) -> Imported<usize> {
        let options = match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::VarHandleOptions(options)) => Some(options),
            _ => None,
        };
        let (mut container, mut name) = ("", "");
        if let Some(options) = options {
            container = options.container()?.unwrap_or_default();
            name = options.shared_name()?.unwrap_or_default();
        }
        let key = (container.to_owned(), name.to_owned());
        if let Some(index) = self.indexes.get(&key) {
            return Ok(*index);
        }
        file.allow(2 * (container.len() + name.len()) + size_of::<Variable>())?;
        self.all.push(Variable { name: name.into(), read: None, initial: None });
        self.indexes.insert(key, self.all.len() - 1);
        Ok(self.all.len() - 1)
    }

    /// Evaluates a subgraph that gives variables their first values.
    fn initialize<'a>(
        &mut self,
        file: &File<'a>,
        pools: &Rc<[PoolId]>,
        index: usize,
    ) -> Result<(), ImportError> {
        let graph = &file.graphs[index];
        let malformed = |Reason(what)| ImportError::Malformed {
            place: format!("subgraph {index}, which CALL_ONCE calls"),
            what,
        };
        if !self.initializers.insert(index) {
            return Ok(());
        }
        let size = (graph.tensors.len() + graph.operators.len()).saturating_mul(BYTES_OF_A_PART);
        file.allow(size).map_err(malformed)?;
        let mut importer = GraphImporter::new(file, graph, pools);
        // What these run may assign variables too.
        let runs_others = |operator: &Operator<'_>| {
            const OTHERS: [B; 5] =
                [B::If, B::While, B::CallOnce, B::StablehloCase, B::StablehloComposite];
            OTHERS.iter().any(|builtin| operator.code.kind.is(*builtin))
        };
        let runs_others = graph.operators.iter().any(runs_others);
        for operator in &graph.operators {
            let OperatorKind::Builtin(builtin) = operator.code.kind else { continue };
            match builtin {
                B::VarHandle => {
                    let variable = self.index(file, operator).map_err(malformed)?;
                    importer.know_handle(operator, variable).map_err(malformed)?;
                }
                B::AssignVariable => {
                    let Some(variable) = importer.handle(operator).map_err(malformed)? else {
                        continue;
                    };
                    let value = if runs_others {
                        Err(Reason::new("the subgraph that assigns it runs others"))
                    } else {
                        importer.assigned(index, operator)
                    };
                    self.all[variable].initial = Some((value, index));
                }
                // What cannot be evaluated is missed where it is assigned.
                _ => drop(importer.evaluate(builtin, operator)),
            }
        }
        Ok(())
    }

    fn initial(&self, variable: usize) -> Imported<&Initial> {
        let Variable { name, initial, .. } = &self.all[variable];
        match initial {
            Some((Ok(initial), _)) => Ok(initial),
            Some((Err(Reason(why)), _)) => {
                Err(Reason::new(format!("the first value of variable {name:?}: {why}")))
            }
            None => Err(Reason::new(format!("variable {name:?} {NO_FIRST_VALUE}"))),
        }
    }

    /// What the values of a variable look like: its type is that with which it is read.
    fn spec(&self, variable: usize) -> Imported<OperandSpec> {
        let initial = self.initial(variable)?;
        let Some((_, spec)) = &self.all[variable].read else { return Ok(initial.spec.clone()) };
        let dimensions = initial.spec.dimensions.clone();
        let spec = OperandSpec { dimensions, ..spec.clone()? };
        if spec.operand_type != initial.spec.operand_type {
            let name = &self.all[variable].name;
            let (found, expected) = (spec.operand_type, initial.spec.operand_type);
            return Err(Reason::new(format!(
                "variable {name:?} is read as {found}, and {expected} is assigned at first"
            )));
        }
        Ok(spec)
    }

    /// How a variable that is kept between executions is described, and what it is at first.
    pub(super) fn state(
        &self,
        file: &File<'_>,
        variable: usize,
        state: State,
    ) -> Result<(TensorDescription, State), ImportError> {
        let place = || format!("variable {:?}", self.all[variable].name);
        let malformed = |Reason(what)| ImportError::Malformed { place: place(), what };
        let initial = self.initial(variable).map_err(malformed)?;
        let read = self.all[variable].read.as_ref().map(|(tensor, _)| *tensor);
        let (graph, tensor) = read.unwrap_or(initial.tensor);
        let tensor = &file.graphs[graph].tensors[tensor];
        let description =
            description::of_variable(tensor, &self.all[variable].name, &initial.shape);
        file.allow(description.byte_size() + initial.bytes.len()).map_err(malformed)?;
        let name = Some(self.all[variable].name.clone());
        Ok((description, State { initial: Some(initial.bytes.clone()), name, ..state }))
    }

    /// The variables with a first value that a subgraph uses, or what it runs does, given what handles among its
    /// arguments stand for.
    fn used_by(
        &mut self,
        file: &File<'_>,
        index: usize,
        arguments: Vec<Option<usize>>,
        depth: usize,
    ) -> Imported<Rc<BTreeSet<usize>>> {
        let key = (index, arguments);
        if let Some(used) = self.used.get(&key) {
            return Ok(Rc::clone(used));
        }
        let graph = &file.graphs[index];
        if depth > MOST_NESTED {
            return Err(Reason::new("subgraphs are nested too deep"));
        }
        file.allow((graph.operators.len() + 1).saturating_mul(size_of::<usize>()))?;
        let mut handles: HashMap<usize, usize> = HashMap::new();
        for (input, handle) in graph.inputs.iter().zip(&key.1) {
            handles.extend(handle.map(|handle| (*input, handle)));
        }
        let mut used: BTreeSet<usize> = BTreeSet::new();
        for operator in &graph.operators {
            let OperatorKind::Builtin(builtin) = operator.code.kind else { continue };
            match builtin {
                B::VarHandle => {
                    let variable = self.index(file, operator)?;
                    handles.extend(operator.outputs.first().map(|output| (*output, variable)));
                }
                B::ReadVariable | B::AssignVariable => {
                    let handle = operator.inputs.first().copied().flatten();
                    used.extend(handle.and_then(|it| handles.get(&it)));
                }
                B::If | B::While | B::StablehloCase | B::StablehloComposite => {
                    let skipped = usize::from(matches!(builtin, B::If | B::StablehloCase));
                    let inputs = operator.inputs.iter().skip(skipped);
                    let passed: Vec<Option<usize>> =
                        inputs.map(|it| handles.get(&(*it)?).copied()).collect();
                    for index in subgraphs_of(file, operator)? {
                        used.extend(self.used_by(file, index, passed.clone(), depth + 1)?.iter());
                    }
                }
                _ => {}
            }
        }
        used.retain(|variable| self.all[*variable].initial.is_some());
        let used = Rc::new(used);
        self.used.insert(key, Rc::clone(&used));
        Ok(used)
    }
}

/// The subgraphs that an operator names, each once, without those that are not there.
fn subgraphs_of(file: &File<'_>, operator: &Operator<'_>) -> Imported<BTreeSet<usize>> {
    let indexes = match operator.table.builtin_options()? {
        Some(BuiltinOptionsRef::IfOptions(options)) => {
            vec![options.then_subgraph_index()?, options.else_subgraph_index()?]
        }
        Some(BuiltinOptionsRef::WhileOptions(options)) => {
            vec![options.cond_subgraph_index()?, options.body_subgraph_index()?]
        }
        _ => match operator.table.builtin_options_2()? {
            Some(BuiltinOptions2Ref::StablehloCaseOptions(options)) => {
                let branches = options.branch_subgraph_indices()?;
                let count = branches.map_or(0, |it| it.len());
                file.allow(count.saturating_mul(size_of::<i32>()))?;
                branches.into_iter().flatten().collect()
            }
            Some(BuiltinOptions2Ref::StableHloCompositeOptions(options)) => {
                vec![options.decomposition_subgraph_index()?]
            }
            _ => Vec::new(),
        },
    };
    let count = file.graphs.len();
    let indexes = indexes.into_iter().filter_map(|index| usize::try_from(index).ok());
    Ok(indexes.filter(|index| *index < count).collect())
}

/// The subgraph that a CALL_ONCE names.
fn initializer(file: &File<'_>, operator: &Operator<'_>) -> Imported<usize> {
    let options = options!(operator, CallOnceOptions);
    let index = options.init_subgraph_index()?;
    let graph = usize::try_from(index).ok().filter(|it| *it < file.graphs.len());
    let graph = graph.ok_or_else(|| Reason::new(format!("there is no subgraph {index}")))?;
    if graph == file.main {
        return Err(Reason::new("it calls the subgraph that it is in"));
    }
    let (inputs, outputs) = (file.graphs[graph].inputs.len(), file.graphs[graph].outputs.len());
    if inputs + outputs > 0 {
        return Err(Reason::new(format!(
            "subgraph {graph} has {inputs} inputs and {outputs} outputs, expected none"
        )));
    }
    Ok(graph)
}

impl<'f, 'a> Graphs<'f, 'a> {
    /// The variables that the subgraphs of one operator use, whichever of them does.
    pub(super) fn used_by(
        &mut self,
        subgraphs: &[usize],
        arguments: &[Option<Array>],
    ) -> Imported<Vec<usize>> {
        let mut used = BTreeSet::new();
        for index in subgraphs {
            let inputs = &self.file.graphs[*index].inputs;
            let handle = |(input, argument): (&usize, &Option<Array>)| {
                let is_handle = is_handle(&self.file.graphs[*index], *input);
                let argument = argument.as_ref().filter(|_| is_handle)?;
                variable_of(argument, &self.variables)
            };
            let handles = inputs.iter().zip(arguments).map(handle).collect();
            used.extend(self.variables.used_by(self.file, *index, handles, 0)?.iter());
        }
        Ok(used.into_iter().collect())
    }
}

fn variable_of(handle: &Array, variables: &Variables) -> Option<usize> {
    match handle.integers()? {
        [index] => usize::try_from(*index).ok().filter(|it| *it < variables.all.len()),
        _ => None,
    }
}

impl<'f, 'a> GraphImporter<'f, 'a> {
    /// The operators for variables; `None` for others.
    pub(super) fn variable_operator(
        &mut self,
        builtin: B,
        operator: &Operator<'_>,
        graphs: &mut Graphs<'f, 'a>,
    ) -> Option<Result<(), Stop>> {
        let outcome = match builtin {
            B::VarHandle => graphs
                .variables
                .index(self.file, operator)
                .and_then(|variable| self.know_handle(operator, variable)),
            B::ReadVariable => self.read_variable(operator, &graphs.variables),
            B::AssignVariable => self.assign_variable(operator, &graphs.variables),
            B::CallOnce => self.call_once(operator, &graphs.variables),
            _ => return None,
        };
        Some(outcome.map_err(Stop::from))
    }

    /// Whether this is the subgraph that becomes the model's main one.
    pub(super) fn is_main(&self) -> bool {
        std::ptr::eq(self.graph, &self.file.graphs[self.file.main])
    }

    fn know_handle(&mut self, operator: &Operator<'_>, variable: usize) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        self.folded[output] = Some(Array::number(variable));
        Ok(())
    }

    /// The index that the handle of an operator holds, if it is known.
    fn handle(&self, operator: &Operator<'_>) -> Imported<Option<usize>> {
        let tensor = self.input_tensor(operator, 0)?;
        let index = self.folded[tensor].as_ref().and_then(Array::integers);
        Ok(index.and_then(|index| usize::try_from(*index.first()?).ok()))
    }

    /// The variable that an operator is about.
    fn variable(&self, operator: &Operator<'_>, variables: &Variables) -> Imported<usize> {
        let variable = self.handle(operator)?.filter(|index| *index < variables.all.len());
        variable
            .ok_or_else(|| Reason::new("which variable it is about is not known before it runs"))
    }

    /// What an ASSIGN_VARIABLE assigns, where that is known.
    fn assigned(&self, graph: usize, operator: &Operator<'_>) -> Imported<Initial> {
        let tensor = self.input_tensor(operator, 1)?;
        if self.element(tensor)? == Element::Bfloat16 {
            // Its bytes are described as the file has them, and kept as floats.
            return Err(Reason::new("BFLOAT16 is no type of variables here"));
        }
        let known = self.known(tensor)?;
        let shape =
            known.as_ref().map_or_else(|| self.tensor(tensor).shape.clone(), |it| it.shape.clone());
        let dimensions = if shape.is_empty() { vec![1] } else { shape.clone() };
        let spec = self.spec_with(tensor, dimensions)?;
        let bytes = if self.is_constant(tensor) {
            let bytes = self.constant_bytes(tensor)?;
            self.file.allow(bytes.len())?;
            bytes.into_owned()
        } else if let Some(values) = known.as_ref().and_then(Array::integers) {
            self.stored_as(tensor, spec.operand_type, values)?
        } else {
            let name = self.tensor(tensor).shown_name();
            return Err(Reason::new(format!("{name} is computed by floats, expected a constant")));
        };
        Ok(Initial { tensor: (graph, tensor), spec, shape, bytes })
    }

    /// Takes over a variable from IF or WHILE.
    pub(super) fn take_variable(&mut self, variable: usize, variables: &Variables) -> Imported {
        let spec = variables.spec(variable)?;
        let shape = variables.initial(variable)?.shape.clone();
        let name = variables.all[variable].name.as_str();
        let operand = self.builder.input(name, spec.clone());
        self.followed.insert(variable, Followed { operand, spec, shape });
        Ok(())
    }

    /// A variable's value by now: in the main subgraph at first what the execution before has left.
    pub(super) fn variable_now(
        &mut self,
        variable: usize,
        variables: &Variables,
    ) -> Imported<OperandId> {
        if !self.followed.contains_key(&variable) {
            variables.initial(variable)?;
            if !self.is_in_main {
                let name = &variables.all[variable].name;
                let what = format!(
                    "variable {name:?} comes into a subgraph in a way that is not followed"
                );
                return Err(Reason::new(what));
            }
            self.take_variable(variable, variables)?;
            self.kept_variables.push(variable);
        }
        Ok(self.followed[&variable].operand)
    }

    /// A new operand for a variable's value, as the result of an operation.
    pub(super) fn next_value(&mut self, variable: usize) -> Option<OperandId> {
        let followed = self.followed.get_mut(&variable)?;
        let operand = self.builder.temporary(followed.spec.clone());
        followed.operand = operand;
        Some(operand)
    }

    /// The values of variables at the end of a subgraph.
    pub(super) fn values_of(&self, variables: &[usize]) -> Vec<OperandId> {
        variables.iter().filter_map(|it| Some(self.followed.get(it)?.operand)).collect()
    }

    fn read_variable(&mut self, operator: &Operator<'_>, variables: &Variables) -> Imported {
        let variable = self.variable(operator, variables)?;
        let operand = self.variable_now(variable, variables)?;
        let output = self.output_tensor(operator, 0)?;
        let Followed { spec, shape, .. } = &self.followed[&variable];
        let found = self.spec_with(output, spec.dimensions.clone())?;
        if found != *spec {
            return Err(differs(&variables.all[variable].name, "read", &found, spec));
        }
        self.shapes[output] = Some(shape.clone());
        self.operands[output] = Some(operand);
        Ok(())
    }

    fn assign_variable(&mut self, operator: &Operator<'_>, variables: &Variables) -> Imported {
        let variable = self.variable(operator, variables)?;
        let tensor = self.input_tensor(operator, 1)?;
        let operand = self.operand(tensor)?;
        let found = self.builder.spec(operand);
        if variables.all[variable].initial.is_none() && self.is_in_main {
            // It is forgotten after the execution, since every other reader is refused.
            let shape = self.shape(tensor)?;
            self.followed.insert(variable, Followed { operand, spec: found, shape });
            return Ok(());
        }
        self.variable_now(variable, variables)?;
        let Some(followed) = self.followed.get_mut(&variable) else { return Ok(()) };
        if found != followed.spec {
            return Err(differs(&variables.all[variable].name, "assigned", &found, &followed.spec));
        }
        followed.operand = operand;
        Ok(())
    }

    fn call_once(&mut self, operator: &Operator<'_>, variables: &Variables) -> Imported {
        if !self.is_main() {
            return Err(Reason::new("it is in a subgraph that another operator runs"));
        }
        let initializer = initializer(self.file, operator)?;
        let initializes = |variable: &&usize| {
            let initial = &variables.all[**variable].initial;
            initial.as_ref().is_some_and(|(_, by)| *by == initializer)
        };
        if let Some(variable) = self.followed.keys().find(initializes) {
            let name = &variables.all[*variable].name;
            return Err(Reason::new(format!(
                "variable {name:?}, which it initializes, is used before"
            )));
        }
        Ok(())
    }
}

fn differs(name: &str, what: &str, found: &OperandSpec, expected: &OperandSpec) -> Reason {
    Reason::new(format!(
        "variable {name:?} is {what} as {}, it is {}",
        shown(found),
        shown(expected)
    ))
}

/// Type, shape and quantization of an operand.
pub(super) fn shown(spec: &OperandSpec) -> String {
    let OperandSpec { operand_type, dimensions, scale, zero_point, .. } = spec;
    if operand_type.quantized_range().is_some() {
        return format!("{operand_type} {dimensions:?}, scale {scale}, zero point {zero_point}");
    }
    format!("{operand_type} {dimensions:?}")
}
