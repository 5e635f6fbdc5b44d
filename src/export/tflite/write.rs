//! Writing an offline plan into a model, and reading it back.
//!
//! References in the file lead forward, so a new root goes in front: it refers to the tables of the
//! old file, which follows unchanged.

use crate::{
    Bytes,
    export::tflite::{ENTRY, OfflinePlan},
    import::tflite::{
        ALIGNMENT, Arena, TfliteError,
        flat::File,
        model::{Model, slot},
    },
};

/// The number of fields of a model's table that memplan knows. Any other might not be a reference, and so
/// cannot be copied.
const KNOWN_SLOTS: usize = 10;

/// The count of numbers in an entry before its offsets.
const HEADER: usize = 3;

/// The largest size of a flatbuffer in bytes.
const LARGEST: usize = i32::MAX as usize;

impl OfflinePlan {
    /// Reads the offline plan in the metadata of a model, if there is one. If there are several, it
    /// reads the last, as the runtime does.
    ///
    /// # Errors
    ///
    /// If the bytes are not a TensorFlow Lite model, or the plan does not have an offset for each tensor, or
    /// has a negative one other than -1.
    pub fn of_model(model: &[u8]) -> Result<Option<Self>, TfliteError> {
        let file = File::new(model)?;
        let model = Model::read(&file)?;
        let Some(entry) = model.metadata.iter().rev().find(|entry| entry.name == ENTRY) else {
            return Ok(None);
        };
        let wrong = |reason: String| TfliteError::Wrong { place: place(), reason };
        let bytes = model.buffer(entry.buffer).unwrap_or_default();
        let numbers: Vec<i32> = bytes
            .chunks_exact(4)
            .map(|bytes| bytes.try_into().map_or(0, i32::from_le_bytes))
            .collect();
        let tensors = model.tensor_count();
        let stated = numbers.get(2).copied().and_then(|count| usize::try_from(count).ok());
        if stated != Some(tensors) {
            let stated = numbers.get(2).copied().unwrap_or(0);
            return Err(wrong(format!(
                "it states {stated} offsets, but there are {tensors} tensors"
            )));
        }
        let Some(offsets) = numbers.get(HEADER..HEADER + tensors) else {
            return Err(wrong(format!(
                "its data ends before the {tensors} offsets that it states"
            )));
        };
        let offset = |(tensor, &offset): (usize, &i32)| match offset {
            -1 => Ok(None),
            offset => Bytes::try_from(offset).map(Some).map_err(|_| {
                wrong(format!("tensor {tensor} has the offset {offset}, in front of the arena"))
            }),
        };
        offsets.iter().enumerate().map(offset).collect::<Result<_, _>>().map(|o| Some(Self::new(o)))
    }

    /// Writes the plan into a model. The old file follows the new metadata byte for byte; an existing plan of
    /// the same length is overwritten in its place, if `replace` allows it.
    ///
    /// # Errors
    ///
    /// If the model cannot be read, or has a plan that may not be replaced; if Vela has compiled it, a called
    /// subgraph has variables, or it has no buffers; or if an offset is not a multiple of 16, or is too
    /// large.
    pub fn write(
        &self,
        model: &[u8],
        arena: &Arena,
        replace: bool,
    ) -> Result<Vec<u8>, TfliteError> {
        let file = File::new(model)?;
        let tables = Model::read(&file)?;
        check_run(&tables)?;
        check_copy(&tables)?;
        let has_offsets = |plan: Self| plan.offsets.iter().any(Option::is_some);
        // A plan that memplan cannot read may still serve other tools.
        let is_planned = Self::of_model(model).map_or(true, |plan| plan.is_some_and(has_offsets));
        if is_planned && !replace {
            return Err(TfliteError::Unsupported {
                place: place(),
                what: "the model has an offline plan already".to_owned(),
                remedy: "replace it with --replace, or take the model without it",
            });
        }
        let data = self.data(&tables, arena)?;
        let bytes = match overwritten(&tables, &data) {
            Some(bytes) => bytes,
            None => prepended(&file, &tables, &data)?,
        };
        Ok(bytes)
    }

    /// Checks that the runtime can use an offline plan for a model.
    ///
    /// # Errors
    ///
    /// If the model cannot be read, Vela has compiled it, or a called subgraph has variables.
    pub fn check_model(model: &[u8]) -> Result<(), TfliteError> {
        check_run(&Model::read(&File::new(model)?)?)
    }

    /// The data of the metadata entry.
    fn data(&self, tables: &Model, arena: &Arena) -> Result<Vec<u8>, TfliteError> {
        let wrong = |reason: String| TfliteError::Wrong { place: place(), reason };
        let number = |number: usize| {
            i32::try_from(number).map_err(|_| wrong(format!("{number} does not fit in 31 bits")))
        };
        let (entries, tensors) = (self.offsets.len(), tables.tensor_count());
        if entries != tensors || arena.tensors != tensors {
            return Err(wrong(format!(
                "it has {entries} offsets, but there are {tensors} tensors"
            )));
        }
        let mut numbers = vec![1, number(tables.subgraphs.len())?, number(self.offsets.len())?];
        for (offset, (.., tensor)) in self.offsets.iter().zip(tables.tensors()) {
            numbers.push(match *offset {
                None => -1,
                Some(offset) if !tensor.is_planned() => {
                    let name = &tensor.name;
                    return Err(wrong(format!(
                        "'{name}' lies outside the head, but has the offset {offset}"
                    )));
                }
                Some(offset) if !offset.is_multiple_of(ALIGNMENT) => {
                    return Err(wrong(format!(
                        "the offset {offset} is no multiple of {ALIGNMENT}"
                    )));
                }
                Some(offset) => i32::try_from(offset)
                    .map_err(|_| wrong(format!("the offset {offset} does not fit in 31 bits")))?,
            });
        }
        Ok(numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
    }
}

fn place() -> String {
    format!("metadata entry '{ENTRY}'")
}

pub(super) fn refused(place: &str, what: &str, remedy: &'static str) -> Result<(), TfliteError> {
    Err(TfliteError::Unsupported { place: place.to_owned(), what: what.to_owned(), remedy })
}

/// Refuses models for which an offline plan would go wrong at run time.
fn check_run(tables: &Model) -> Result<(), TfliteError> {
    for (subgraph, of) in tables.subgraphs.iter().enumerate() {
        for (index, operator) in of.operators.iter().enumerate() {
            if tables.is_custom(operator) && tables.kind(operator) == "ethos-u" {
                let place = format!("subgraph {subgraph}, operator {index}");
                let what = "Vela has compiled this model, with addresses of its own";
                return refused(&place, what, "plan the model that Vela has read");
            }
        }
        let variable = of.tensors.iter().find(|tensor| tensor.is_variable);
        if let Some(variable) = variable.filter(|_| subgraph > 0) {
            let place = format!("subgraph {subgraph}, tensor '{}'", variable.name);
            let what = "the runtime takes the offset of another tensor for a variable of a called subgraph";
            return refused(
                &place,
                what,
                "move the variable into subgraph 0, or run without a plan",
            );
        }
    }
    Ok(())
}

/// Refuses models that cannot be copied behind a new root.
fn check_copy(tables: &Model) -> Result<(), TfliteError> {
    if tables.buffers.is_empty() {
        let what = "it has no buffers, so that a plan would become the data of its tensors";
        let remedy = "write it with a converter that adds the empty buffer 0";
        return refused("the model", what, remedy);
    }
    if tables.has_data_behind {
        let what =
            "its weights lie at fixed places behind the tables, which a longer front would move";
        return refused("the model", what, "write a file below 2 GB");
    }
    if tables.root.slots() > KNOWN_SLOTS {
        let what = "its table has fields that memplan does not know, and cannot copy";
        return refused("the model", what, "write it with an older converter");
    }
    Ok(())
}

/// The file with the entry overwritten, if it has one of the same length that nothing else uses.
fn overwritten(tables: &Model, data: &[u8]) -> Option<Vec<u8>> {
    let entry = tables.metadata.iter().rev().find(|entry| entry.name == ENTRY)?;
    let old = *tables.buffers.get(entry.buffer)?;
    let end = old.at + old.length;
    let touches = |at: usize, length: usize| at < end && old.at < at + length;
    let users = tables.buffers.iter().filter(|of| touches(of.at, of.length)).count();
    let is_shared = users > 1
        || tables.tensors().any(|(.., tensor)| tensor.data == old)
        || tables.metadata.iter().filter(|other| other.buffer == entry.buffer).count() > 1;
    if is_shared || old.length != data.len() {
        return None;
    }
    let mut bytes = tables.bytes.to_vec();
    bytes.get_mut(old.at..end)?.copy_from_slice(data);
    Some(bytes)
}

/// The bytes in front of the old file.
struct Front {
    bytes: Vec<u8>,
    /// References to the old file: their positions here, and their targets there.
    old: Vec<(usize, usize)>,
}

impl Front {
    fn align(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }

    fn u16(&mut self, number: usize) {
        self.bytes.extend_from_slice(&u16::try_from(number).unwrap_or(u16::MAX).to_le_bytes());
    }

    fn u32(&mut self, number: usize) {
        self.bytes.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
    }

    /// Leaves room for a reference, and returns its place.
    fn reference(&mut self) -> usize {
        let at = self.bytes.len();
        self.u32(0);
        at
    }

    /// A reference to a place in the old file.
    fn old(&mut self, target: usize) {
        let at = self.reference();
        self.old.push((at, target));
    }

    /// Points a reference at the next byte.
    fn here(&mut self, reference: usize) {
        let distance = u32::try_from(self.bytes.len() - reference).unwrap_or(u32::MAX);
        self.bytes[reference..reference + 4].copy_from_slice(&distance.to_le_bytes());
    }

    /// The layout of a table of fields of 32 bits, of which some are absent, and the first bytes of the
    /// table, at which `from` points from then on.
    fn table(&mut self, from: usize, present: &[bool]) {
        self.align(4);
        let layout = self.bytes.len();
        self.u16(4 + 2 * present.len());
        self.u16(4 + 4 * present.iter().filter(|&&present| present).count());
        let mut offset = 4;
        for &present in present {
            self.u16(if present { offset } else { 0 });
            offset += if present { 4 } else { 0 };
        }
        self.align(4);
        self.here(from);
        let distance = self.bytes.len() - layout;
        self.u32(distance);
    }
}

/// The file behind a new root with one more buffer and one more entry of the metadata.
fn prepended(file: &File, tables: &Model, data: &[u8]) -> Result<Vec<u8>, TfliteError> {
    let root = &tables.root;
    let what = "a field of the model";
    let mut targets = [None; KNOWN_SLOTS];
    for (slot, target) in targets.iter_mut().enumerate().skip(1) {
        *target = root.target(slot, what)?;
    }
    let buffers = file.targets(root.vector(slot::BUFFERS, 4, what)?, what)?;
    let entries = file.targets(root.vector(slot::METADATA, 4, what)?, what)?;
    let mut front = Front { bytes: vec![0; 4], old: Vec::new() };
    front.bytes.extend_from_slice(b"TFL3");
    let has_version = root.field(0, 4, what)?.is_some();
    let is_new = |slot: usize| matches!(slot, slot::BUFFERS | slot::METADATA);
    let present: Vec<bool> = (0..KNOWN_SLOTS)
        .map(|slot| is_new(slot) || targets[slot].is_some() || (slot == 0 && has_version))
        .collect();
    front.table(0, &present);
    if has_version {
        front.u32(root.u32(0, what)?);
    }
    let mut new = Vec::new();
    for (slot, target) in targets.iter().enumerate().skip(1) {
        match target {
            _ if is_new(slot) => new.push(front.reference()),
            &Some(target) => front.old(target),
            None => {}
        }
    }
    let mut vector = |from: usize, old: &[usize]| {
        front.here(from);
        front.u32(old.len() + 1);
        for &target in old {
            front.old(target);
        }
        front.reference()
    };
    let buffer = vector(new[0], &buffers);
    let entry = vector(new[1], &entries);
    front.table(buffer, &[true]);
    let data_from = front.reference();
    front.table(entry, &[true, true]);
    let name_from = front.reference();
    front.u32(buffers.len());
    front.here(name_from);
    front.u32(ENTRY.len());
    front.bytes.extend_from_slice(ENTRY.as_bytes());
    front.bytes.push(0);
    // The data of buffers begin at multiples of 16 bytes, behind their length.
    let aligned = (front.bytes.len() + 4).next_multiple_of(16) - 4;
    front.bytes.resize(aligned, 0);
    front.here(data_from);
    front.u32(data.len());
    front.bytes.extend_from_slice(data);
    front.align(16);
    let base = front.bytes.len();
    if base.saturating_add(tables.bytes.len()) > LARGEST {
        return Err(TfliteError::Unsupported {
            place: "the model".to_owned(),
            what: "with its plan, it would be larger than a flatbuffer may be".to_owned(),
            remedy: "plan a model below 2 GB",
        });
    }
    let Front { mut bytes, old } = front;
    for (at, target) in old {
        let distance = u32::try_from(base + target - at).unwrap_or(u32::MAX);
        bytes[at..at + 4].copy_from_slice(&distance.to_le_bytes());
    }
    bytes.extend_from_slice(tables.bytes);
    Ok(bytes)
}
