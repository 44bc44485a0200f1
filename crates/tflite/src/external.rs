//! Constants that are in other files than the model, which the format calls external buffers.
//!
//! A group of them is a file, by its name beside the model's file. Which memory holds a group follows from the tables: groups
//! that a buffer names, in ascending order, are [`Stored::outside`](crate::graph::Stored::outside).

use crate::error::{ImportError, Shown};
use crate::excerpt::Excerpt;
use crate::file_memory;
use crate::graph::OUTSIDE;
use crate::reading::{Meter, malformed};
use crate::schema::{ExternalBufferRef, ModelRef};
use nnhal_hal::Memory;
use planus::ReadAsRoot;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Component, Path};
use std::rc::Rc;

/// Files that a model may name; each is open for as long as the model is used.
const MOST_FILES: usize = 256;
/// The field of the table `Model` with the names of groups.
const MODEL_GROUPS: u16 = 8;
/// How bytes are arranged that are as those of constants in the model's file. No name says the same.
const UNPACKED: &str = "unpacked";

/// By id of an external buffer: its index among the buffers, or why its bytes are not there.
pub(crate) type ExternalBuffers = HashMap<u32, Result<usize, Rc<str>>>;

/// Adds the external buffers to those of the file.
pub(crate) fn read(
    model: &ModelRef<'_>,
    excerpt: &Excerpt,
    buffers: &mut Vec<Range<usize>>,
    meter: &mut Meter,
) -> Result<ExternalBuffers, ImportError> {
    let groups = groups(model, meter)?;
    let mut all = ExternalBuffers::new();
    for (index, table) in tables(model)?.enumerate() {
        let place = format!("external buffer {index}");
        let table = table.map_err(malformed(&*place))?;
        meter.take(1)?;
        let id = table.id().map_err(malformed(&*place))?;
        let group = table.group().map_err(malformed(&*place))?;
        let packing = table.packing().map_err(malformed(&*place))?.unwrap_or_default();
        let name = groups.get(&group).map_or("", |name| name);
        let number = groups.keys().position(|it| *it == group).unwrap_or(0);
        let found = if !packing.is_empty() && packing != UNPACKED {
            Err(format!("its bytes are packed as {}, expected {UNPACKED:?}", Shown(packing)).into())
        } else if number >= excerpt.outside_count() {
            let name = Shown(name);
            Err(format!("it is in {name}, a file beside the model's, which is known where the model is loaded by its path").into())
        } else {
            let (offset, length) = (table.offset(), table.length());
            let offset = offset.map_err(malformed(&*place))?;
            let length = length.map_err(malformed(&*place))?;
            let range = range(number, offset, length).filter(|it| excerpt.holds(it));
            buffers.push(range.ok_or_else(|| {
                let name = Shown(name);
                malformed(place)(format!("{length} bytes at {offset} are outside of {name}"))
            })?);
            Ok(buffers.len() - 1)
        };
        all.insert(id, found);
    }
    Ok(all)
}

/// Where bytes of a group are among all that [`Excerpt::holds`].
fn range(number: usize, offset: u64, length: u64) -> Option<Range<usize>> {
    let end = offset.checked_add(length).filter(|end| *end <= OUTSIDE)?;
    let memory = OUTSIDE.checked_mul(number as u64 + 1)?;
    let place = |at: u64| usize::try_from(memory.checked_add(at)?).ok();
    Some(place(offset)?..place(end)?)
}

fn tables<'a>(
    model: &ModelRef<'a>,
) -> Result<impl Iterator<Item = planus::Result<ExternalBufferRef<'a>>>, ImportError> {
    let tables = model.external_buffers().map_err(malformed("external buffers"))?;
    Ok(tables.into_iter().flatten())
}

/// Names of the groups that a buffer is of, by number of the group.
fn groups<'a>(
    model: &ModelRef<'a>,
    meter: &mut Meter,
) -> Result<BTreeMap<u32, &'a str>, ImportError> {
    let mut wanted = BTreeMap::new();
    for table in tables(model)? {
        meter.take(1)?;
        let table = table.map_err(malformed("external buffers"))?;
        wanted.insert(table.group().map_err(malformed("external buffers"))?, "");
    }
    let known = model.external_buffer_groups().map_err(malformed("external buffer groups"))?;
    for (group, name) in &mut wanted {
        let place = format!("external buffer group {group}");
        let table = known.as_ref().and_then(|known| known.get(*group as usize));
        let Some(table) = table else {
            return Err(malformed(place)("a buffer is of it, and there is no such group"));
        };
        let table = table.map_err(malformed(&*place))?;
        *name = table.name().map_err(malformed(&*place))?.unwrap_or_default();
    }
    if wanted.len() > MOST_FILES {
        let what = format!("they are {} files, expected {MOST_FILES} at most", wanted.len());
        return Err(malformed("external buffer groups")(what));
    }
    Ok(wanted)
}

/// The files that a model's constants are in, in the order of [`Stored::outside`](crate::graph::Stored::outside).
///
/// # Errors
/// One of them cannot be opened, or is elsewhere than beside the model.
pub(crate) fn open(tables: &Memory, path: &Path) -> Result<Vec<Memory>, ImportError> {
    // Few models have any, so that their tables are not read twice.
    if !names_groups(tables) {
        return Ok(Vec::new());
    }
    let excerpt = Excerpt::new(tables)?;
    let model = ModelRef::read_as_root(excerpt.bytes()).map_err(malformed("root"))?;
    let groups = groups(&model, &mut Meter::of(excerpt.bytes()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let open = |(group, name): (&u32, &&str)| {
        let place = || format!("external buffer group {group}");
        let file = Path::new(*name);
        // Whoever wrote the model does not choose what else of this machine is read.
        let is_beside = file.components().all(|it| matches!(it, Component::Normal(_)));
        if name.is_empty() || !is_beside {
            let what = format!("{}, expected the name of a file beside the model", Shown(name));
            return Err(malformed(place())(what));
        }
        file_memory(&folder.join(file)).map_err(|error| {
            malformed(place())(format!("{} cannot be opened: {error}", Shown(name)))
        })
    };
    groups.iter().map(open).collect()
}

/// Whether the table `Model` has the field; false of what is no such file.
fn names_groups(tables: &Memory) -> bool {
    let has_field = || -> Option<bool> {
        let view = tables.view().ok()?;
        let number = |at: u64| -> Option<u32> {
            let mut bytes = [0; 4];
            view.read(at, &mut bytes).ok()?;
            Some(u32::from_le_bytes(bytes))
        };
        let root = u64::from(number(0)?);
        let description = root.checked_add_signed(-i64::from(number(root)?.cast_signed()))?;
        let length = number(description)? & 0xFFFF;
        Some(length >= u32::from(4 + 2 * (MODEL_GROUPS + 1)))
    };
    has_field().unwrap_or(false)
}
