//! Moving deprecated fields of the main document to the documents that newer Talos versions have for them.
