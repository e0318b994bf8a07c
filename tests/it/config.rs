//! Files people hold: talosconfig and kubeconfig through the program.
