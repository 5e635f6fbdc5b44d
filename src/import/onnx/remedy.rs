//! The remedy for sizes that exclude each other: another size of a dimension that the user chose.

use crate::import::{
    ImportOptions,
    onnx::{OnnxError, Reader, read::context::given_names},
};

/// The largest number of dimensions to try.
const MAX_NAMES: usize = 16;

/// Adds the remedy to an error about sizes that exclude each other. To find it, the model is read again with
/// other sizes: how the difference of the two sizes changes shows which size makes it 0.
pub(super) fn with_remedy(reader: &Reader, options: &ImportOptions, error: OnnxError) -> OnnxError {
    let OnnxError::Conflict { operator, sizes, rule, difference, .. } = error else { return error };
    let attempt = |name: &str, size: u64| {
        let mut options = options.clone();
        options.dims.insert(name.to_owned(), size.into());
        match reader.read(&options) {
            Err(OnnxError::Conflict { operator: other, rule: broken, difference, .. })
                if other == operator && broken == rule =>
            {
                Some(difference)
            }
            // Open sizes are reported at the end.
            Err(OnnxError::OpenSizes { .. }) | Ok(_) => Some(0),
            Err(_) => None,
        }
    };
    let (mut remedies, mut causes) = (Vec::new(), Vec::new());
    for name in given_names(reader.graph).into_iter().take(MAX_NAMES) {
        let given = options.dims.get(name).map(|sizes| sizes.most).or(options.default_dim);
        let Some(size) = given else { continue };
        let Some(next) = size.checked_add(1).and_then(|next| attempt(name, next)) else { continue };
        if next == difference {
            continue;
        }
        causes.push(name);
        let [next, from] = [next, difference].map(i128::from);
        let other = i128::from(size) - from / (next - from);
        let other = u64::try_from(other).ok().filter(|&other| other > 0 && other != size);
        if let Some(other) = other.filter(|&other| attempt(name, other) == Some(0)) {
            remedies.push(format!("--dim {name}={other}"));
        }
    }
    let remedy = if !remedies.is_empty() {
        format!("; give {}", remedies.join(" or "))
    } else if !causes.is_empty() {
        format!("; give other sizes with --dim {}", causes.join(" or "))
    } else if !options.shapes.is_empty() {
        "; check the shapes given with --shape".to_owned()
    } else {
        "; the model itself states these sizes, so correct it there".to_owned()
    };
    OnnxError::Conflict { operator, sizes, rule, difference, remedy }
}
