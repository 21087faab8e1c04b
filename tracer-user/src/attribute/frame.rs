//! Which function a stack is named by.

use crate::store::schema::Frame;

/// Bytes of a place's and a function's name that are kept in a name.
const MOST_PLACE: usize = 96;
const MOST_FUNCTION: usize = 128;
/// Libraries that work for whoever calls them: not a name for what a thread does, if there is a better one.
const RUNTIME: &[&str] =
    &["libc", "libm", "libpthread", "ld-linux-x86-64", "ld-linux-aarch64", "libstdc++", "libgcc_s"];

/// What a stack says a thread was at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// `train.py`, `PIL/JpegImagePlugin.py`; of native code `libjpeg`.
    pub file: String,
    /// The function. Empty: only the library is known.
    pub function: String,
    /// The line.
    pub line: Option<i32>,
    /// The native function in which Python's was: `libjpeg: jpeg_idct_islow`.
    pub inside: String,
}

/// The innermost function of a stack that says something: Python's, if there is one, with the native one that it was in.
/// `None`: nothing is known.
#[must_use]
pub fn place(frames: &[Frame]) -> Option<Place> {
    let python = frames.iter().position(|frame| &*frame.kind == "python");
    let native = native(&frames[..python.unwrap_or(frames.len())]);
    let Some(first) = python else {
        let (file, function) = native.or_else(|| interpreter(frames))?;
        return Some(Place { file, function, line: None, inside: String::new() });
    };
    // The import machinery's own frames (`<frozen importlib._bootstrap>`) say less than who imports.
    let own =
        frames[first..].iter().find(|frame| !file(frame).starts_with("<frozen")).unwrap_or(&frames[first]);
    Some(Place {
        file: short_path(file(own)),
        function: ending(own.function.as_deref().unwrap_or_default(), MOST_FUNCTION),
        line: own.line,
        inside: native.map_or(String::new(), |(module, function)| joined(&module, &function)),
    })
}

fn file(frame: &Frame) -> &str {
    frame.file.as_deref().unwrap_or_default()
}

/// The innermost native function that is none of the runtime's; else the innermost that has a name; else the library of the
/// innermost frame.
fn native(frames: &[Frame]) -> Option<(String, String)> {
    let native = || frames.iter().filter(|frame| &*frame.kind == "native");
    let named = || native().filter(|frame| frame.function.is_some() && frame.module.is_some());
    let own = named().find(|frame| !is_runtime(frame)).or_else(|| named().next());
    let frame = own.or_else(|| native().find(|frame| frame.module.is_some()))?;
    Some(of_native(frame))
}

fn interpreter(frames: &[Frame]) -> Option<(String, String)> {
    frames.iter().find(|frame| frame.function.is_some() && frame.module.is_some()).map(of_native)
}

fn of_native(frame: &Frame) -> (String, String) {
    let module = short_module(frame.module.as_deref().unwrap_or_default());
    (module, ending(frame.function.as_deref().unwrap_or_default(), MOST_FUNCTION))
}

fn is_runtime(frame: &Frame) -> bool {
    frame.module.as_deref().is_some_and(|module| RUNTIME.contains(&short_module(module).as_str()))
}

/// `libjpeg: jpeg_idct_islow`, or `libjpeg`.
fn joined(module: &str, function: &str) -> String {
    if function.is_empty() { module.to_owned() } else { format!("{module}: {function}") }
}

/// The part of a path that says which file it is: of a package its path in it, else its name.
fn short_path(path: &str) -> String {
    let package = ["/site-packages/", "/dist-packages/"].iter().find_map(|folder| path.rsplit_once(folder));
    let short = match package {
        Some((_, inside)) => inside,
        None => path.rsplit_once('/').map_or(path, |(_, name)| name),
    };
    ending(short, MOST_PLACE)
}

/// `libjpeg` of `libjpeg-4105a3b8.so.62.3.0`, `_imaging` of `_imaging.cpython-311-x86_64-linux-gnu.so`.
fn short_module(module: &str) -> String {
    let name = module.split(".cpython-").next().unwrap_or(module);
    let name = name.split(".so").next().unwrap_or(name);
    let name = match name.rsplit_once('-') {
        // What makes the libraries in a wheel unique.
        Some((plain, hash)) if hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => plain,
        _ => name,
    };
    ending(name, MOST_PLACE)
}

/// At most so many bytes from the end.
fn ending(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let from = (text.len() - most..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    format!("…{}", &text[from..])
}

impl Place {
    /// `train.py:118 collate_fn, in libjpeg: jpeg_idct_islow`.
    #[must_use]
    pub fn label(file: &str, function: &str, line: Option<i32>, inside: &str) -> String {
        let mut label = match line {
            Some(line) => format!("{file}:{line} {function}"),
            None => joined(file, function),
        };
        if !inside.is_empty() {
            label.push_str(", in ");
            label.push_str(inside);
        }
        label
    }
}

/// The function of a label, without its line and what it was in: `train.py: collate_fn`. What is no such label stays as it is.
#[must_use]
pub fn function_of_label(label: &str) -> String {
    let own = label.split_once(", in ").map_or(label, |(own, _)| own);
    let parts = own.split_once(' ').and_then(|(place, function)| {
        let (file, line) = place.rsplit_once(':')?;
        let is_line = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
        is_line.then(|| joined(file, function))
    });
    parts.unwrap_or_else(|| own.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: &str, function: &str, place: &str, line: Option<i32>) -> Frame {
        let (file, module) =
            if kind == "python" { (Some(place.into()), None) } else { (None, Some(place.into())) };
        let function = (!function.is_empty()).then(|| function.into());
        Frame { kind: kind.into(), function, file, line, module, address: None }
    }

    fn label(frames: &[Frame]) -> Option<String> {
        place(frames).map(|place| Place::label(&place.file, &place.function, place.line, &place.inside))
    }

    #[test]
    fn the_innermost_function_that_says_something() {
        let collate = || frame("python", "collate_fn", "/srv/app/train.py", Some(118));
        let pil =
            || frame("python", "load", "/usr/lib/python3/dist-packages/PIL/JpegImagePlugin.py", Some(7));
        let idct = || frame("native", "jpeg_idct_islow", "libjpeg-4105a3b8.so.62.3.0", None);
        let memcpy = || frame("native", "__memmove_avx_unaligned_erms", "libc.so.6", None);
        let interpreter = || frame("interpreter", "_PyObject_Malloc", "libpython3.11.so.1.0", None);
        let frozen =
            || frame("python", "_call_with_frames_removed", "<frozen importlib._bootstrap>", Some(241));
        let said = |frames: &[Frame]| label(frames).unwrap_or_default();
        assert_eq!(said(&[collate()]), "train.py:118 collate_fn");
        assert_eq!(said(&[interpreter(), collate()]), "train.py:118 collate_fn");
        assert_eq!(
            said(&[memcpy(), idct(), pil(), collate()]),
            "PIL/JpegImagePlugin.py:7 load, in libjpeg: jpeg_idct_islow"
        );
        assert_eq!(
            said(&[memcpy(), collate()]),
            "train.py:118 collate_fn, in libc: __memmove_avx_unaligned_erms"
        );
        assert_eq!(
            said(&[frame("native", "", "libz.so.1", None), idct(), collate()]),
            "train.py:118 collate_fn, in libjpeg: jpeg_idct_islow"
        );
        assert_eq!(said(&[frozen(), collate()]), "train.py:118 collate_fn");
        assert_eq!(said(&[frozen()]), "<frozen importlib._bootstrap>:241 _call_with_frames_removed");
        assert_eq!(said(&[memcpy(), idct()]), "libjpeg: jpeg_idct_islow");
        assert_eq!(said(&[frame("native", "", "libcublas.so.12", None)]), "libcublas");
        assert_eq!(said(&[interpreter()]), "libpython3.11: _PyObject_Malloc");
        assert_eq!(label(&[]), None);
    }

    #[test]
    fn a_label_without_its_line() {
        for (label, function) in [
            ("train.py:118 collate_fn, in libjpeg: jpeg_idct_islow", "train.py: collate_fn"),
            ("libjpeg: jpeg_idct_islow", "libjpeg: jpeg_idct_islow"),
            ("/usr/bin/python3.11", "/usr/bin/python3.11"),
            ("a b:7 c", "a b:7 c"),
            ("train.py: collate_fn, in libz", "train.py: collate_fn"),
        ] {
            assert_eq!(function_of_label(label), function);
        }
    }

    #[test]
    fn long_names_are_cut() {
        let long = format!("/x/{}é", "y".repeat(500));
        let place = place(&[frame("python", &long, &long, None)]).expect("a place");
        assert!(place.file.len() <= MOST_PLACE + 3 && place.function.len() <= MOST_FUNCTION + 3);
    }
}
