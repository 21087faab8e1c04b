//! Fills [`Offsets`] from the running kernel's types.

use tracer_abi::kernel::Offsets;

use super::arch;
use super::btf::Btf;

/// A field without which nothing can be recorded, and which this kernel does not have.
#[derive(Debug, thiserror::Error)]
#[error("this kernel's type information has no field {structure}.{field}, which gtrace needs")]
pub struct MissingField {
    structure: &'static str,
    field: &'static str,
}

/// Where the fields lie on the kernel that `btf` describes.
///
/// # Errors
/// A field that every program needs is missing (the scheduler's and the system call's); what only one subsystem needs
/// becomes [`Offsets::ABSENT`].
pub fn resolve(btf: &Btf) -> Result<Offsets, MissingField> {
    let need = |structure: &'static str, field: &'static str| {
        btf.member_offset(structure, field).ok_or(MissingField { structure, field })
    };
    let want = |structure: &str, field: &str| btf.member_offset(structure, field).unwrap_or(Offsets::ABSENT);
    // Of two names of one field, the newer first.
    let either = |first: (&str, &str), second: (&str, &str)| {
        btf.member_offset(first.0, first.1).unwrap_or_else(|| want(second.0, second.1))
    };
    let (regs_window, regs_index) = arch::argument_registers(btf)
        .ok_or(MissingField { structure: "pt_regs", field: "the registers of the arguments" })?;
    Ok(Offsets {
        task_state: either(("task_struct", "__state"), ("task_struct", "state")),
        task_flags: need("task_struct", "flags")?,
        task_pid: need("task_struct", "pid")?,
        task_tgid: need("task_struct", "tgid")?,
        task_comm: need("task_struct", "comm")?,
        task_files: need("task_struct", "files")?,
        task_signal: need("task_struct", "signal")?,
        task_cpus_ptr: want("task_struct", "cpus_ptr"),
        task_nr_cpus_allowed: want("task_struct", "nr_cpus_allowed"),
        task_worker_private: want("task_struct", "worker_private"),
        kthread_data: want("kthread", "data"),
        worker_current_func: want("worker", "current_func"),
        task_mm: want("task_struct", "mm"),
        task_thread_pointer: want("task_struct", arch::THREAD_POINTER),
        task_thread_pid: want("task_struct", "thread_pid"),
        pid_level: want("pid", "level"),
        pid_numbers: want("pid", "numbers"),
        task_compat_word: want("task_struct", arch::COMPAT_WORD),
        task_compat_mask: arch::COMPAT_MASK,
        signal_live: need("signal_struct", "live")?,
        files_fdt: need("files_struct", "fdt")?,
        fdtable_fd: need("fdtable", "fd")?,
        fdtable_max_fds: need("fdtable", "max_fds")?,
        file_inode: need("file", "f_inode")?,
        file_dentry: need("file", "f_path.dentry")?,
        file_private_data: need("file", "private_data")?,
        file_flags: need("file", "f_flags")?,
        inode_ino: need("inode", "i_ino")?,
        inode_mode: need("inode", "i_mode")?,
        inode_generation: need("inode", "i_generation")?,
        inode_rdev: need("inode", "i_rdev")?,
        inode_sb: need("inode", "i_sb")?,
        inode_dentry_first: want("inode", "i_dentry.first"),
        sb_dev: need("super_block", "s_dev")?,
        sb_magic: need("super_block", "s_magic")?,
        dentry_name: need("dentry", "d_name.name")?,
        dentry_parent: need("dentry", "d_parent")?,
        dentry_alias: want("dentry", "d_u.d_alias"),
        socket_sk: want("socket", "sk"),
        sock_family: want("sock_common", "skc_family"),
        sock_protocol: want("sock", "sk_protocol"),
        sock_daddr: want("sock_common", "skc_daddr"),
        sock_rcv_saddr: want("sock_common", "skc_rcv_saddr"),
        sock_dport: want("sock_common", "skc_dport"),
        sock_num: want("sock_common", "skc_num"),
        sock_v6_daddr: want("sock_common", "skc_v6_daddr"),
        sock_v6_rcv_saddr: want("sock_common", "skc_v6_rcv_saddr"),
        sock_socket: want("sock", "sk_socket"),
        unix_peer: want("unix_sock", "peer"),
        socket_inode: want("socket_alloc", "vfs_inode"),
        rq_queue: want("request", "q"),
        rq_bio: want("request", "bio"),
        rq_cmd_flags: want("request", "cmd_flags"),
        rq_data_len: want("request", "__data_len"),
        rq_sector: want("request", "__sector"),
        rq_start_time_ns: want("request", "start_time_ns"),
        rq_part: want("request", "part"),
        queue_disk: want("request_queue", "disk"),
        disk_part0: want("gendisk", "part0"),
        bdev_dev: want("block_device", "bd_dev"),
        bio_bdev: want("bio", "bi_bdev"),
        bio_io_vec: want("bio", "bi_io_vec"),
        bio_end_io: want("bio", "bi_end_io"),
        bio_private: want("bio", "bi_private"),
        iomap_dio_iocb: want("iomap_dio", "iocb"),
        kiocb_filp: want("kiocb", "ki_filp"),
        page_compound_head: want("page", "compound_head"),
        page_mapping: either(("folio", "mapping"), ("page", "mapping")),
        mapping_host: want("address_space", "host"),
        hrtimer_function: want("hrtimer", "function"),
        timer_function: want("timer_list", "function"),
        irqaction_name: want("irqaction", "name"),
        regs_window,
        regs_index,
        regs_ip: want("pt_regs", arch::INSTRUCTION_POINTER),
        regs_sp: want("pt_regs", "sp"),
        regs_fp: arch::frame_pointer(btf).unwrap_or(Offsets::ABSENT),
        regs_lr: arch::link_register(btf).unwrap_or(Offsets::ABSENT),
    })
}
