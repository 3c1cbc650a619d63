//! What people see after programs wrote.
