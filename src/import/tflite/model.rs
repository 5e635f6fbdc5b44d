//! The model that the tables of a file describe: subgraphs, tensors, operators, metadata.

use crate::{
    Bytes,
    import::tflite::{
        TfliteError,
        element::Element,
        flat::{File, Table, Vector},
        names,
    },
    sequence::{SizeBasis, TensorType},
};

/// The slots of the tables, as in the schema.
pub(crate) mod slot {
    pub(crate) const OPERATOR_CODES: usize = 1;
    pub(crate) const SUBGRAPHS: usize = 2;
    /// In the table of a subgraph.
    pub(crate) const OPERATORS: usize = 3;
    pub(crate) const BUFFERS: usize = 4;
    pub(crate) const METADATA: usize = 6;
    pub(crate) const EXTERNAL_BUFFERS: usize = 9;
}

/// A model.
pub(crate) struct Model<'a> {
    pub(crate) root: Table<'a>,
    pub(crate) bytes: &'a [u8],
    codes: Vec<Code>,
    pub(crate) subgraphs: Vec<Subgraph<'a>>,
    /// The data of each buffer.
    pub(crate) buffers: Vec<Vector>,
    /// True if data of buffers lies at fixed places of the file, behind the tables, as in files above 2 GB.
    pub(crate) has_data_behind: bool,
    pub(crate) metadata: Vec<Metadata>,
}

/// An entry of the metadata.
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) buffer: usize,
}

/// A kind of operator.
struct Code {
    kind: String,
    is_custom: bool,
}

/// A graph of operators. Operators of other subgraphs may call it.
pub(crate) struct Subgraph<'a> {
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
    pub(crate) operators: Vec<Operator<'a>>,
    /// The number of tensors of all subgraphs before this one.
    pub(crate) first_tensor: usize,
    /// The operators, by place, behind which the interpreter plans anew in a run, because it finds a shape there.
    pub(super) stops: Vec<usize>,
}

/// A tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) shape: Vec<u64>,
    pub(crate) element: Element,
    /// `None` if the type has no size in bytes.
    pub(crate) bytes: Option<Bytes>,
    /// The dimensions whose sizes the file leaves open. It then states others in their places, such as 1.
    pub(crate) open: Vec<usize>,
    pub(crate) basis: SizeBasis,
    pub(crate) is_constant: bool,
    pub(crate) is_variable: bool,
    /// Where the interpreter keeps it, if that is not its arena.
    pub(crate) apart: Option<Apart>,
    /// The number of scales of its quantization: one for all channels, or one for each.
    pub(crate) scales: usize,
    /// Its data in the file.
    pub(crate) data: Vector,
}

/// Memory of the interpreter beside its arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Apart {
    /// Computed once, from constants, and kept.
    Persistent,
    /// From the heap, because the size is known only when the operator runs.
    Heap,
}

/// An operator.
pub(crate) struct Operator<'a> {
    code: usize,
    /// The tensors read; `None` for one that is omitted.
    pub(crate) inputs: Vec<Option<usize>>,
    pub(crate) outputs: Vec<usize>,
    options: Option<Table<'a>>,
}

/// An operator by its subgraph and its place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OperatorAt {
    pub(crate) subgraph: usize,
    pub(crate) operator: usize,
}

impl Tensor {
    pub(crate) fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Sets the shape, with the size in bytes.
    ///
    /// # Errors
    ///
    /// If the size does not fit in 64 bits.
    pub(crate) fn set_shape(&mut self, shape: Vec<u64>) -> Result<(), String> {
        let too_large = || "its size does not fit in 64 bits".to_owned();
        let elements = shape.iter().try_fold(1_u64, |product, &size| product.checked_mul(size));
        let elements = elements.ok_or_else(too_large)?;
        let bits = self.element.bits().map(|bits| elements.checked_mul(bits).ok_or_else(too_large));
        self.bytes = bits.transpose()?.map(|bits| bits.div_ceil(8));
        self.shape = shape;
        Ok(())
    }

    /// The element type and the shape; `None` if the size is unknown.
    pub(crate) fn tensor_type(&self) -> Option<TensorType> {
        self.bytes?;
        Some(TensorType::new(self.element.name().to_lowercase(), &*self.shape))
    }

    /// Returns whether TFLM's planner places it: it is computed at run time and has bytes.
    pub(crate) fn is_planned(&self) -> bool {
        // The kernel of VAR_HANDLE keeps the handle that it makes.
        let is_handle = self.element == Element::RESOURCE;
        let is_apart = self.is_constant || self.is_variable || self.apart.is_some();
        !is_apart && !is_handle && self.bytes != Some(0)
    }
}

impl Operator<'_> {
    /// An integer of the operator's options.
    pub(crate) fn option(&self, slot: usize, default: i32) -> Result<i32, TfliteError> {
        match &self.options {
            Some(options) => options.i32_or(slot, default, "the options of an operator"),
            None => Ok(default),
        }
    }

    /// A list of integers of the operator's options.
    pub(crate) fn option_list(&self, slot: usize) -> Result<Vec<i32>, TfliteError> {
        let options = self.options.as_ref();
        options.map_or(Ok(Vec::new()), |options| options.i32s(slot, "the options of an operator"))
    }

    /// A text of the operator's options.
    pub(crate) fn option_text(&self, slot: usize) -> Result<String, TfliteError> {
        let options = self.options.as_ref();
        options
            .map_or(Ok(String::new()), |options| options.text(slot, "the options of an operator"))
    }

    /// A byte of the operator's options.
    pub(crate) fn option_byte(&self, slot: usize) -> Result<u8, TfliteError> {
        let options = self.options.as_ref();
        options.map_or(Ok(0), |options| options.u8(slot, "the options of an operator"))
    }
}

impl<'a> Model<'a> {
    pub(crate) fn read(file: &'a File<'a>) -> Result<Self, TfliteError> {
        let root = file.root()?;
        let external = root.vector(slot::EXTERNAL_BUFFERS, 4, "the list of external buffers")?;
        if external.length > 0 {
            return Err(outside("the model"));
        }
        let codes = root.tables(slot::OPERATOR_CODES, "an operator code")?;
        let codes = codes.iter().map(Code::read).collect::<Result<_, _>>()?;
        let buffers = root.tables(slot::BUFFERS, "a buffer")?;
        let mut has_data_behind = false;
        let buffers = buffers.iter().enumerate().map(|(at, buffer)| {
            let what = "the data of a buffer";
            let offset = buffer.u64(1, what)?;
            if offset <= 1 {
                return buffer.vector(0, 1, what);
            }
            has_data_behind = true;
            let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
            let (start, length) = (number(offset), number(buffer.u64(2, what)?));
            let end = start.checked_add(length).filter(|&end| end <= file.bytes().len());
            end.map(|_| Vector { at: start, length }).ok_or_else(|| {
                wrong(
                    format!("buffer {at}"),
                    format!("its {length} bytes at {start} lie beyond the end of the file"),
                )
            })
        });
        let buffers: Vec<Vector> = buffers.collect::<Result<_, _>>()?;
        let entries = root.tables(slot::METADATA, "an entry of the metadata")?;
        let metadata = entries.iter().map(|entry| {
            let what = "an entry of the metadata";
            Ok(Metadata { name: entry.text(0, what)?, buffer: entry.u32(1, what)? })
        });
        let metadata = metadata.collect::<Result<_, TfliteError>>()?;
        let mut model = Self {
            root,
            bytes: file.bytes(),
            codes,
            subgraphs: Vec::new(),
            buffers,
            has_data_behind,
            metadata,
        };
        let mut first_tensor = 0;
        for (at, table) in root.tables(slot::SUBGRAPHS, "a subgraph")?.iter().enumerate() {
            let subgraph = model.subgraph(file, at, table, first_tensor)?;
            first_tensor += subgraph.tensors.len();
            model.subgraphs.push(subgraph);
        }
        if model.subgraphs.is_empty() {
            return Err(wrong("the model", "it has no subgraph"));
        }
        Ok(model)
    }

    fn subgraph(
        &self,
        file: &File,
        at: usize,
        table: &Table<'a>,
        first_tensor: usize,
    ) -> Result<Subgraph<'a>, TfliteError> {
        let tensors = table.tables(0, "a tensor")?;
        let tensors =
            tensors.iter().enumerate().map(|(index, tensor)| self.tensor(at, index, tensor));
        let tensors: Vec<Tensor> = tensors.collect::<Result<_, _>>()?;
        let known = |place: &dyn Fn() -> String, index: i32| {
            let found = usize::try_from(index).ok().filter(|&index| index < tensors.len());
            found.ok_or_else(|| wrong(place(), format!("there is no tensor {index}")))
        };
        let list = |slot: usize, what: &'static str| {
            let place = || format!("subgraph {at}, its list of {what}s");
            let numbers = table.i32s(slot, "the inputs or outputs of a subgraph")?;
            numbers.into_iter().map(|index| known(&place, index)).collect::<Result<_, _>>()
        };
        let (inputs, outputs) = (list(1, "input")?, list(2, "output")?);
        let mut operators = Vec::new();
        for (index, operator) in table.tables(slot::OPERATORS, "an operator")?.iter().enumerate() {
            let what = "an operator";
            let code = operator.u32(0, what)?;
            let kind = self.codes.get(code).map_or("?", |code| &code.kind);
            let place = || format!("subgraph {at}, operator {index} ({kind})");
            if code >= self.codes.len() {
                return Err(wrong(place(), format!("there is no operator code {code}")));
            }
            // Every operator gets a copy of the name.
            file.spend(kind.len())?;
            let input = |index| match index {
                -1 => Ok(None),
                index => known(&place, index).map(Some),
            };
            let inputs =
                operator.i32s(1, what)?.into_iter().map(input).collect::<Result<_, _>>()?;
            let outputs = operator.i32s(2, what)?.into_iter().map(|index| known(&place, index));
            let outputs = outputs.collect::<Result<_, _>>()?;
            for index in operator.i32s(8, what)? {
                let tensor = known(&place, index)?;
                if tensors[tensor].bytes != Some(0) {
                    return Err(TfliteError::Unsupported {
                        place: place(),
                        what: format!(
                            "it has the intermediate tensor {index}, which TensorFlow Lite Micro refuses"
                        ),
                        remedy: "convert the model without hybrid or full LSTM kernels",
                    });
                }
            }
            operators.push(Operator { code, inputs, outputs, options: operator.table(4, what)? });
        }
        Ok(Subgraph { tensors, inputs, outputs, operators, first_tensor, stops: Vec::new() })
    }

    fn tensor(&self, subgraph: usize, at: usize, table: &Table) -> Result<Tensor, TfliteError> {
        let what = "a tensor";
        let name = table.text(3, what)?;
        let place = || tensor_place(subgraph, at, &name);
        let buffer = table.u32(2, what)?;
        // A model without any buffer has only tensors that are computed.
        let data = match self.buffers.get(buffer) {
            Some(&data) => data,
            None if buffer == 0 => Vector::default(),
            None => return Err(wrong(place(), format!("there is no buffer {buffer}"))),
        };
        if table.u32(10, what)? > 0 {
            return Err(outside(&place()));
        }
        let size = |size: i32| {
            u64::try_from(size).map_err(|_| TfliteError::Unsupported {
                place: place(),
                what: format!("a dimension is {size}, which leaves its size open"),
                remedy: "convert the model with fixed shapes",
            })
        };
        let shape = table.i32s(0, what)?.into_iter().map(size).collect::<Result<Vec<_>, _>>()?;
        let signature = table.i32s(7, what)?;
        let open = (0..shape.len()).filter(|&at| signature.get(at).is_some_and(|&size| size < 0));
        let quantization = table.table(4, "the quantization of a tensor")?;
        let scales = match quantization {
            Some(table) => table.vector(2, 4, "the quantization of a tensor")?.length,
            None => 0,
        };
        let mut tensor = Tensor {
            open: open.collect(),
            shape: Vec::new(),
            element: Element(table.u8(1, what)?),
            bytes: None,
            basis: SizeBasis::Exact,
            is_constant: data.length > 0,
            is_variable: table.u8(5, what)? != 0,
            apart: None,
            scales,
            data,
            name,
        };
        tensor
            .set_shape(shape)
            .map_err(|reason| wrong(tensor_place(subgraph, at, &tensor.name), reason))?;
        Ok(tensor)
    }

    /// The name of an operator's kind.
    pub(crate) fn kind(&self, operator: &Operator) -> &str {
        &self.codes[operator.code].kind
    }

    /// Returns whether an operator is not one of the built-in ones.
    pub(crate) fn is_custom(&self, operator: &Operator) -> bool {
        self.codes[operator.code].is_custom
    }

    pub(crate) fn operator(&self, at: OperatorAt) -> &Operator<'a> {
        &self.subgraphs[at.subgraph].operators[at.operator]
    }

    /// An operator in messages.
    pub(crate) fn operator_place(&self, at: OperatorAt) -> String {
        let kind = self.kind(self.operator(at));
        format!("subgraph {}, operator {} ({kind})", at.subgraph, at.operator)
    }

    /// The number of tensors of all subgraphs.
    pub(crate) fn tensor_count(&self) -> usize {
        self.subgraphs.iter().map(|subgraph| subgraph.tensors.len()).sum()
    }

    /// All tensors, subgraph by subgraph, with their subgraph and place in it.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = (usize, usize, &Tensor)> {
        self.subgraphs.iter().enumerate().flat_map(|(subgraph, of)| {
            of.tensors.iter().enumerate().map(move |(at, tensor)| (subgraph, at, tensor))
        })
    }

    /// The integers of a constant of at most 16 elements.
    pub(crate) fn integers(&self, tensor: &Tensor) -> Option<Vec<i64>> {
        let width = tensor.element.integer_width()?;
        let Vector { at, length } = tensor.data;
        if !tensor.is_constant || length > 16 * width || length % width > 0 {
            return None;
        }
        let integer = |bytes: &[u8]| match bytes.try_into() {
            Ok(bytes) => i64::from_le_bytes(bytes),
            Err(_) => bytes.try_into().map_or(0, |bytes| i32::from_le_bytes(bytes).into()),
        };
        Some(self.bytes.get(at..at + length)?.chunks_exact(width).map(integer).collect())
    }

    /// The bytes of a buffer.
    pub(crate) fn buffer(&self, buffer: usize) -> Option<&'a [u8]> {
        let &Vector { at, length } = self.buffers.get(buffer)?;
        self.bytes.get(at..at + length)
    }
}

impl Code {
    fn read(table: &Table) -> Result<Self, TfliteError> {
        let what = "an operator code";
        // Codes above 127 do not fit into the first field, which then holds 127.
        let deprecated = i32::from(table.u8(0, what)?.cast_signed());
        let code = deprecated.max(table.i32_or(3, 0, what)?);
        let is_custom = code == names::CUSTOM;
        let kind = if is_custom { table.text(1, what)? } else { names::of_code(code) };
        Ok(Self { kind, is_custom })
    }
}

pub(crate) fn tensor_place(subgraph: usize, tensor: usize, name: &str) -> String {
    format!("subgraph {subgraph}, tensor {tensor} ('{name}')")
}

pub(crate) fn wrong(place: impl Into<String>, reason: impl Into<String>) -> TfliteError {
    TfliteError::Wrong { place: place.into(), reason: reason.into() }
}

fn outside(place: &str) -> TfliteError {
    TfliteError::Unsupported {
        place: place.to_owned(),
        what: "its data lies outside the tables of the file".to_owned(),
        remedy: "store the model in one flatbuffer, below 2 GB",
    }
}
