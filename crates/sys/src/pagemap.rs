//! Which pages of another process are mapped right now, and which it has written to.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use crate::error::check;
use crate::{Error, Result};

const SCAN: libc::c_ulong = 0xc060_6610;
const PAGE_IS_PRESENT: u64 = 1 << 3;
const PROTECTED: u64 = 1 << 57;
const PAGE: u64 = 4096;

/// `struct pm_scan_arg` of linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct ScanRequest {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `struct page_region` of linux/fs.h.
#[repr(C)]
#[derive(Default, Clone, Copy)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// The page table of a process, as far as the kernel shows it.
#[derive(Debug)]
pub struct PageMap {
    file: File,
}

impl PageMap {
    /// Opens the page table of process `pid`.
    ///
    /// # Errors
    /// If the process is gone or belongs to another user.
    pub fn open(pid: u32) -> Result<Self> {
        let file = File::open(format!("/proc/{pid}/pagemap"))
            .map_err(|source| Error::new("open the program's page map", source))?;
        Ok(Self { file })
    }

    /// Tries a scan as [`PageMap::present`] does (since Linux 6.7).
    ///
    /// # Errors
    /// `ENOTTY` if the kernel cannot scan.
    pub fn scans(&self) -> Result<()> {
        self.scan(PAGE, 2 * PAGE, &mut |_start, _end| {}).map(drop)
    }

    /// Whether a page is write-protected by userfaultfd, mapped or not, and so has not been written
    /// to since (Linux, admin-guide/mm/pagemap: bit 57).
    ///
    /// # Errors
    /// When the process is gone.
    pub fn is_protected(&self, address: u64) -> Result<bool> {
        let mut entry = [0; 8];
        self.file
            .read_exact_at(&mut entry, address / PAGE * 8)
            .map_err(|source| Error::new("read the program's page map", source))?;
        Ok(u64::from_ne_bytes(entry) & PROTECTED != 0)
    }

    /// Calls `visit` with each mapped range of pages in `start..end` (addresses).
    ///
    /// # Errors
    /// When the process is gone.
    pub fn present(&self, start: u64, end: u64, mut visit: impl FnMut(u64, u64)) -> Result<()> {
        let mut at = start;
        while at < end {
            match self.scan(at, end, &mut visit) {
                Ok(next) if next > at => at = next,
                Ok(_) => break,
                Err(error) if error.errno() == Some(libc::ENOTTY) => {
                    return self.read(at, end, &mut visit);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Calls `visit` with the mapped ranges of up to 512 regions. Returns where the scan ended.
    #[expect(unsafe_code, reason = "PAGEMAP_SCAN has no safe wrapper")]
    fn scan(&self, start: u64, end: u64, visit: &mut impl FnMut(u64, u64)) -> Result<u64> {
        let mut regions = [Region::default(); 512];
        let mut request = ScanRequest {
            size: size_of::<ScanRequest>() as u64,
            start,
            end,
            vec: regions.as_mut_ptr() as u64,
            vec_len: regions.len() as u64,
            category_mask: PAGE_IS_PRESENT,
            return_mask: PAGE_IS_PRESENT,
            ..ScanRequest::default()
        };
        // SAFETY: the request and the regions it points to live through the call.
        let found = unsafe { libc::ioctl(self.file.as_raw_fd(), SCAN, &raw mut request) };
        let found = check("scan the program's page map", found.into())?;
        for region in regions.iter().take(usize::try_from(found).unwrap_or(0)) {
            visit(region.start, region.end);
        }
        Ok(request.walk_end)
    }

    // As `scan`, for kernels before 6.7, which have only the table: eight bytes a page, bit 63 says
    // present.
    fn read(&self, start: u64, end: u64, visit: &mut impl FnMut(u64, u64)) -> Result<()> {
        let mut buffer = [0_u8; 4096];
        let mut at = start;
        while at < end {
            let pages = ((end - at) / PAGE).min(512);
            let bytes = usize::try_from(pages * 8).unwrap_or(0);
            let read = self
                .file
                .read_at(&mut buffer[..bytes], at / PAGE * 8)
                .map_err(|source| Error::new("read the program's page map", source))?;
            if read < 8 {
                break;
            }
            for entry in buffer[..read].chunks_exact(8) {
                if entry[7] & 0x80 != 0 {
                    visit(at, at + PAGE);
                }
                at += PAGE;
            }
        }
        Ok(())
    }
}
