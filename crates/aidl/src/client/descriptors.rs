//! How many descriptors a call may carry. Over a socket there are at most 64 in one frame; a model with
//! more pools is sent with one that holds them all.

use nnhal_hal::{Error, ErrorStatus, Memory, Model, OperandLifeTime, Result};
use std::borrow::Cow;

/// The most descriptors of one call over a socket.
pub(super) const MOST_OVER_SOCKET: usize = 64;

/// A model has no more pools than this where it is sent with cache files.
const MOST_POOLS: usize = 16;
/// Where pools begin in the one that holds them all.
const ALIGNMENT: u64 = 64;

/// Refuses what would not fit into a frame.
pub(super) fn expect(found: usize, most: usize) -> Result<()> {
    if found <= most {
        return Ok(());
    }
    Err(Error::new(
        ErrorStatus::ResourceExhaustedPersistent,
        format!("the call has {found} descriptors, of which a socket passes at most {most}"),
    ))
}

/// The same model with few enough pools.
pub(super) fn with_few_pools(model: &Model) -> Result<Cow<'_, Model>> {
    if model.pools.len() <= MOST_POOLS {
        return Ok(Cow::Borrowed(model));
    }
    let fail = |error: nnhal_hal::memory::MemoryError| Error::new(error.status(), error);
    let too_large = || Error::invalid("the pools together exceed what 32 bits address");
    let mut begins = Vec::new();
    let mut size = 0_u64;
    for pool in &model.pools {
        begins.push(u32::try_from(size).map_err(|_| too_large())?);
        let end = size.checked_add(pool.size()).ok_or_else(too_large)?;
        size = end.checked_next_multiple_of(ALIGNMENT).ok_or_else(too_large)?;
    }
    u32::try_from(size).map_err(|_| too_large())?;
    let all = Memory::allocate(size).map_err(fail)?;
    let view = all.view().map_err(fail)?;
    for (pool, begin) in model.pools.iter().zip(&begins) {
        let bytes = pool.view().and_then(|from| from.read_to_vec(0, pool.size())).map_err(fail)?;
        view.write(u64::from(*begin), &bytes).map_err(fail)?;
    }
    let mut model = model.clone();
    let sizes: Vec<u64> = model.pools.iter().map(Memory::size).collect();
    let subgraphs = std::iter::once(&mut model.main).chain(&mut model.referenced);
    for operand in subgraphs.flat_map(|subgraph| &mut subgraph.operands) {
        if operand.lifetime != OperandLifeTime::ConstantReference {
            continue;
        }
        let location = &mut operand.location;
        let pool = location.pool_index as usize;
        // What leads out of its pool must not lead into another's.
        let inside = sizes.get(pool).is_some_and(|size| location.end() <= *size);
        let begin = begins.get(pool).filter(|_| inside);
        let begin = begin.ok_or_else(|| Error::invalid("a constant is outside of its pool"))?;
        location.offset = location.offset.checked_add(*begin).ok_or_else(too_large)?;
        location.pool_index = 0;
    }
    model.pools = vec![all];
    Ok(Cow::Owned(model))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_hal::{DataLocation, ExtraParams, Operand, OperandType};

    fn constant(pool_index: u32, offset: u32) -> Operand {
        Operand {
            operand_type: OperandType::TensorFloat32,
            dimensions: vec![1],
            number_of_consumers: 0,
            scale: 0.0,
            zero_point: 0,
            lifetime: OperandLifeTime::ConstantReference,
            location: DataLocation { pool_index, offset, length: 4 },
            extra_params: ExtraParams::None,
        }
    }

    #[test]
    fn many_pools_become_one_with_the_same_constants() {
        let pools: Vec<Memory> =
            (0..70_u8).map(|byte| Memory::from_bytes(&[byte; 70]).unwrap()).collect();
        let mut model = Model { pools, ..Model::default() };
        model.main.operands = (0..70).map(|pool| constant(pool, 66)).collect();
        let few = with_few_pools(&model).unwrap();
        assert_eq!(few.pools.len(), 1);
        let view = few.pools[0].view().unwrap();
        for (byte, operand) in (0..70_u8).zip(&few.main.operands) {
            let location = operand.location;
            assert_eq!(location.pool_index, 0);
            assert_eq!(view.read_to_vec(u64::from(location.offset), 4).unwrap(), [byte; 4]);
        }
        for outside in [constant(3, 67), constant(70, 0), constant(3, u32::MAX)] {
            model.main.operands[0] = outside;
            assert_eq!(with_few_pools(&model).unwrap_err().status(), ErrorStatus::InvalidArgument);
        }
        expect(64, MOST_OVER_SOCKET).unwrap();
        expect(65, MOST_OVER_SOCKET).unwrap_err();
    }
}
