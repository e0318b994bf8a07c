//! Machine configurations, secrets and talosconfigs made from nothing but a few parameters.
