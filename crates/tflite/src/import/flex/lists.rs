//! Lists of tensors, by which converters write the steps of recurrent layers: `TensorListReserve`, `TensorListSetItem` and the
//! like.
//!
//! A list is one operand, its elements one behind the other along a first axis, and so has a fixed number of elements of one
//! shape. An element that no one sets is 0, as it is in TensorFlow. A list of which the shape of elements is not known when it
//! is made gets that of what the loop behind it puts into it.

use crate::error::Reason;
use crate::file::Operator;
use crate::import::array::Array;
use crate::import::tensor::{Element, List};
use crate::import::variables::Passed;
use crate::import::{GraphImporter, Graphs, Imported, Stop};
use crate::node_def::Node;
use nnhal_hal::{OperandId, OperandSpec, OperationType as O};
use nnhal_ops::extension::{ExtensionOperation as E, element_size};

/// What is wrong with a tensor that is no list.
const NO_LIST: &str = "its list comes from no operation on lists";

/// Types of elements, by their numbers in TensorFlow.
fn element_of(number: u64) -> Imported<Element> {
    Ok(match number {
        1 => Element::Float32,
        2 => Element::Float64,
        3 => Element::Int32,
        8 => Element::Complex64,
        9 => Element::Int64,
        10 => Element::Bool,
        17 => Element::Uint16,
        19 => Element::Float16,
        22 => Element::Uint32,
        23 => Element::Uint64,
        _ => {
            return Err(Reason::new(format!(
                "lists of TensorFlow's type {number} are not known here"
            )));
        }
    })
}

impl<'f, 'a> GraphImporter<'f, 'a> {
    /// An operation on lists; `None` if it is another one.
    pub(super) fn list_operator(
        &mut self,
        node: &Node<'_>,
        operator: &Operator<'_>,
    ) -> Option<Imported> {
        Some(match node.operation {
            "TensorListReserve" => self.reserve_list(node, operator),
            "TensorListFromTensor" => self.list_of_tensor(operator),
            "TensorListGetItem" => self.item_of_list(operator),
            "TensorListSetItem" => self.set_item_of_list(operator),
            "TensorListStack" => self.tensor_of_list(operator),
            "TensorListGather" => self.items_of_list(operator),
            "TensorListLength" => self.length_of_list(operator),
            "EmptyTensorList"
            | "TensorListPushBack"
            | "TensorListPopBack"
            | "TensorListResize"
            | "TensorListConcatV2"
            | "TensorListSplit"
            | "TensorListConcatLists"
            | "TensorListPushBackBatch" => {
                Err(Reason::new("lists whose number of elements changes have no counterpart"))
            }
            _ => return None,
        })
    }

    /// The list that an input is.
    fn list(&self, operator: &Operator<'_>, at: usize) -> Imported<(usize, List)> {
        let tensor = self.input_tensor(operator, at)?;
        Ok((tensor, self.lists[tensor].ok_or_else(|| Reason::new(NO_LIST))?))
    }

    /// Inputs: the shape of an element, how many there are.
    fn reserve_list(&mut self, node: &Node<'_>, operator: &Operator<'_>) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        let number = node.element_type("element_dtype").unwrap_or_default();
        let element = element_of(number)?;
        let count = self.constant_integer(operator, 1)?;
        let count = u32::try_from(count).ok().filter(|it| *it > 0);
        let count = count.ok_or_else(|| Reason::new("its number of elements is not above 0"))?;
        self.lists[output] = Some(List { element, count });
        let shape = self.integers(self.input_tensor(operator, 0)?)?;
        let shape = shape.and_then(|lengths| {
            let is_vector = self.rank(operator.inputs[0]?) == 1;
            let lengths =
                lengths.iter().map(|it| u32::try_from(*it)).collect::<Result<Vec<_>, _>>();
            lengths.ok().filter(|lengths| is_vector && !lengths.contains(&0))
        });
        match shape {
            Some(shape) => self.fill_list(output, &shape),
            // Made when it is known.
            None => Ok(()),
        }
    }

    /// Makes a list of elements of this shape, all 0.
    fn fill_list(&mut self, tensor: usize, of_element: &[u32]) -> Imported {
        let Some(list) = self.lists[tensor] else { return Err(Reason::new(NO_LIST)) };
        let shape = [&[list.count], of_element].concat();
        crate::import::movement::elements(&shape)?;
        self.shapes[tensor] = Some(shape.clone());
        let spec = self.spec(tensor)?;
        let size = element_size(spec.operand_type)
            .ok_or_else(|| Reason::new(format!("there are no lists of {}", spec.operand_type)))?;
        let zero = OperandSpec { dimensions: vec![1], ..spec.clone() };
        let zero = self.builder.constant_bytes(zero, &vec![0; size as usize]);
        let lengths = shape.iter().map(|it| i32::try_from(*it)).collect::<Result<Vec<_>, _>>();
        let lengths = lengths.map_err(|_| Reason::new("a length exceeds 31 bits"))?;
        let lengths = self.integer_vector(&lengths);
        let filled = self.builder.extended(E::Fill, [lengths, zero], spec);
        self.set(tensor, filled);
        Ok(())
    }

    /// Inputs: a tensor, the shape of an element.
    fn list_of_tensor(&mut self, operator: &Operator<'_>) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let shape = self.shape(input)?;
        let element = self.element(input)?;
        if element.is_quantized() {
            return Err(Reason::new(format!("lists of {element:?} are not known here")));
        }
        self.lists[output] = Some(List { element, count: shape[0] });
        self.shapes[output] = Some(shape);
        let operand = self.operand(input)?;
        self.operands[output] = Some(operand);
        Ok(())
    }

    /// The operand of a list, and the shape of an element.
    fn elements_of(&mut self, tensor: usize) -> Imported<(OperandId, Vec<u32>)> {
        let Some([_, of_element @ ..]) = self.shapes[tensor].as_deref() else {
            return Err(Reason::new("the shape of its elements must be known here"));
        };
        let of_element = of_element.to_vec();
        Ok((self.operand(tensor)?, of_element))
    }

    /// Inputs: a list, an index, the shape of an element.
    fn item_of_list(&mut self, operator: &Operator<'_>) -> Imported {
        let (list, _) = self.list(operator, 0)?;
        let (operand, of_element) = self.elements_of(list)?;
        let output = self.output_tensor(operator, 0)?;
        let (axis, index) = (self.builder.scalar_i32(0), self.input(operator, 1)?);
        let index = self.reshape(index, OperandSpec::tensor_int32([1]))?;
        self.shapes[output] = Some(of_element.clone());
        let row = self.spec_with(output, [&[1], &of_element[..]].concat())?;
        let row = self.builder.operation(O::Gather, [operand, axis, index], row);
        self.reshape_to(row, output)
    }

    /// Inputs: a list, an index, the element.
    fn set_item_of_list(&mut self, operator: &Operator<'_>) -> Imported {
        let (tensor, list) = self.list(operator, 0)?;
        let (item, output) = (self.input_tensor(operator, 2)?, self.output_tensor(operator, 0)?);
        let of_item = match self.rank(item) {
            0 => Vec::new(),
            _ => self.shape(item)?,
        };
        self.lists[output] = Some(list);
        let shape = [&[list.count], &of_item[..]].concat();
        if self.shapes[tensor].is_none() && self.operands[tensor].is_none() {
            self.fill_list(tensor, &of_item)?;
        }
        self.shapes[output] = Some(shape.clone());
        let (operand, of_element) = match self.shapes[tensor] {
            Some(_) => self.elements_of(tensor)?,
            None => (self.operand(tensor)?, of_item.clone()),
        };
        if of_element != of_item {
            return Err(Reason::new(format!(
                "its element is {of_item:?}, and those of its list are {of_element:?}"
            )));
        }
        let row = self.spec_with(output, [&[1], &of_item[..]].concat())?;
        let item = self.operand(item)?;
        let item = self.reshape(item, row)?;
        let index = self.input(operator, 1)?;
        let mut begins = self.reshape(index, OperandSpec::tensor_int32([1]))?;
        if !of_item.is_empty() {
            let zeros = self.integer_vector(&vec![0; of_item.len()]);
            let rank = u32::try_from(shape.len()).unwrap_or(u32::MAX);
            let inputs = [begins, zeros, self.builder.scalar_i32(0)];
            let all = OperandSpec::tensor_int32([rank]);
            begins = self.builder.operation(O::Concatenation, inputs, all);
        }
        let spec = self.spec(output)?;
        let result = self.builder.extended(E::DynamicUpdateSlice, [operand, item, begins], spec);
        self.set(output, result);
        Ok(())
    }

    /// Inputs: a list, the shape of an element.
    fn tensor_of_list(&mut self, operator: &Operator<'_>) -> Imported {
        let (list, _) = self.list(operator, 0)?;
        let (operand, _) = self.elements_of(list)?;
        let output = self.output_tensor(operator, 0)?;
        self.shapes[output] = self.shapes[list].clone();
        self.operands[output] = Some(operand);
        Ok(())
    }

    /// Inputs: a list, indexes, the shape of an element.
    fn items_of_list(&mut self, operator: &Operator<'_>) -> Imported {
        let (list, _) = self.list(operator, 0)?;
        let (operand, _) = self.elements_of(list)?;
        let inputs = [operand, self.builder.scalar_i32(0), self.input(operator, 1)?];
        self.emit_for(operator, O::Gather, &inputs)
    }

    fn length_of_list(&mut self, operator: &Operator<'_>) -> Imported {
        let (_, list) = self.list(operator, 0)?;
        let output = self.output_tensor(operator, 0)?;
        self.shapes[output] = Some(Vec::new());
        self.folded[output] = Some(Array::scalar(list.count.into()));
        Ok(())
    }

    /// What the inputs of an operator from `first` on are, where they are lists.
    pub(in crate::import) fn lists_of(
        &self,
        operator: &Operator<'_>,
        first: usize,
    ) -> Vec<Option<List>> {
        let inputs = operator.inputs.iter().skip(first);
        let lists = inputs.map(|it| it.and_then(|tensor| self.lists[tensor]));
        let lists: Vec<_> = lists.collect();
        if lists.iter().all(Option::is_none) { Vec::new() } else { lists }
    }

    /// Makes the lists that a loop takes and of whose elements no shape is known: they have that of what the body puts into
    /// them, which its import tells. That import is not kept.
    pub(in crate::import) fn settle_lists(
        &mut self,
        operator: &Operator<'_>,
        body: usize,
        graphs: &mut Graphs<'f, 'a>,
        depth: usize,
    ) -> Result<(), Stop> {
        let is_open = |this: &Self, tensor: usize| {
            this.lists[tensor].is_some() && this.shapes[tensor].is_none()
        };
        let inputs = operator.inputs.iter().enumerate().filter_map(|(at, it)| Some((at, (*it)?)));
        let open: Vec<(usize, usize)> =
            inputs.filter(|(_, tensor)| is_open(self, *tensor)).collect();
        if open.is_empty() {
            return Ok(());
        }
        let mut arguments = Vec::with_capacity(operator.inputs.len());
        for at in 0..operator.inputs.len() {
            let argument = self.known(self.input_tensor(operator, at)?)?;
            arguments.push(argument.map(|it| Array { values: None, ..it }));
        }
        let passed = Passed { lists: self.lists_of(operator, 0), ..Passed::default() };
        let shapes = graphs.shapes_of_outputs(body, &arguments, &passed, depth)?;
        for (at, tensor) in open {
            if let Some(Some([_, of_element @ ..])) = shapes.get(at).map(|it| it.as_deref()) {
                self.fill_list(tensor, of_element)?;
            }
        }
        Ok(())
    }
}
