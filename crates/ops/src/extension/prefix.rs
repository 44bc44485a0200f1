//! A model in which [`PREFIX`] stands for the extension, whatever prefix its writer chose.

use super::{NAME, PREFIX};
use nnhal_hal::{
    ExtensionNameAndPrefix, ExtensionType, Model, OperandType, OperationType, Subgraph,
};
use std::borrow::Cow;
use std::collections::HashSet;

/// All prefixes are those of other extensions, so that [`PREFIX`] cannot be freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoPrefixLeft;

/// The same model with [`PREFIX`] for the extension's types and operations. Another extension that
/// has it in the model gets another one. The model's table of extensions is valid.
///
/// # Errors
/// [`NoPrefixLeft`]
pub(crate) fn resolved(model: &Model) -> Result<Cow<'_, Model>, NoPrefixLeft> {
    let table = &model.extension_name_to_prefix;
    let prefix_of = |is: &dyn Fn(&ExtensionNameAndPrefix) -> bool| {
        table.iter().find(|row| is(row)).map(|row| row.prefix)
    };
    let ours = prefix_of(&|row| row.name == NAME);
    let taken = prefix_of(&|row| row.name != NAME && row.prefix == PREFIX).is_some();
    // Each of the two becomes the other.
    let swapped = match (ours, taken) {
        (Some(PREFIX), _) | (None, false) => return Ok(Cow::Borrowed(model)),
        (Some(ours), _) => ours,
        (None, true) => free(table).ok_or(NoPrefixLeft)?,
    };
    let new = |prefix: u16| match prefix {
        PREFIX => swapped,
        prefix if prefix == swapped => PREFIX,
        prefix => prefix,
    };
    let mut model = model.clone();
    for row in &mut model.extension_name_to_prefix {
        row.prefix = new(row.prefix);
    }
    let extension = |it: ExtensionType| ExtensionType::new(new(it.prefix()), it.number());
    let change = |graph: &mut Subgraph| {
        for operand in &mut graph.operands {
            if let OperandType::Extension(it) = operand.operand_type
                && let Some(changed) = extension(it)
            {
                operand.operand_type = OperandType::Extension(changed);
            }
        }
        for operation in &mut graph.operations {
            if let OperationType::Extension(it) = operation.operation_type
                && let Some(changed) = extension(it)
            {
                operation.operation_type = OperationType::Extension(changed);
            }
        }
    };
    change(&mut model.main);
    model.referenced.iter_mut().for_each(change);
    Ok(Cow::Owned(model))
}

/// A prefix that stands for nothing.
fn free(table: &[ExtensionNameAndPrefix]) -> Option<u16> {
    let used: HashSet<u16> = table.iter().map(|row| row.prefix).collect();
    (1..=u16::MAX).find(|prefix| !used.contains(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_hal::{ModelBuilder, OperandSpec, SubgraphBuilder};

    fn extension(prefix: u16, number: u16) -> ExtensionType {
        ExtensionType::new(prefix, number).unwrap()
    }

    /// An operation 7 on type 3 of each of the prefixes.
    fn model(table: &[(&str, u16)]) -> Model {
        let mut builder = ModelBuilder::new();
        let mut graph = SubgraphBuilder::new();
        for (name, prefix) in table {
            builder.extension(*name, *prefix);
            let spec = OperandSpec::new(OperandType::Extension(extension(*prefix, 3)), [1]);
            let x = graph.input("x", spec.clone());
            let operation = OperationType::Extension(extension(*prefix, 7));
            let y = graph.operation(operation, [x], spec);
            graph.output(y);
        }
        builder.build(graph).unwrap()
    }

    /// By row of the table the prefix of the types and operations that were written with it.
    fn prefixes(model: &Model) -> Vec<u16> {
        let rows = model.extension_name_to_prefix.iter().enumerate();
        rows.map(|(index, row)| {
            let operand = OperandType::Extension(extension(row.prefix, 3));
            let operation = OperationType::Extension(extension(row.prefix, 7));
            assert_eq!(model.main.operands[2 * index].operand_type, operand);
            assert_eq!(model.main.operations[index].operation_type, operation);
            row.prefix
        })
        .collect()
    }

    #[test]
    fn ext_1_any_prefix_may_stand_for_the_extension() {
        for (table, expected) in [
            (vec![(NAME, PREFIX)], vec![PREFIX]),
            (vec![(NAME, 9)], vec![PREFIX]),
            (vec![("a.b", PREFIX), (NAME, 9)], vec![9, PREFIX]),
            (vec![("a.b", 4), (NAME, 9)], vec![4, PREFIX]),
            (vec![("a.b", PREFIX)], vec![1]),
            (vec![("a.b", 1), ("a.c", PREFIX)], vec![1, 2]),
        ] {
            assert_eq!(prefixes(&resolved(&model(&table)).unwrap()), expected, "{table:?}");
        }
    }

    #[test]
    fn ext_1_where_others_have_all_prefixes_there_is_none() {
        let row = |prefix| ExtensionNameAndPrefix { name: format!("a.b{prefix}"), prefix };
        let mut model = model(&[]);
        model.extension_name_to_prefix = (1..=u16::MAX).map(row).collect();
        assert_eq!(resolved(&model).err(), Some(NoPrefixLeft));
        model.extension_name_to_prefix.remove(0);
        assert!(resolved(&model).is_ok());
    }
}
