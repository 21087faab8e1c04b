//! Which API calls are collected: numbers of CUPTI's call-back ids, which were never changed or reused from CUDA 11.7
//! to 13.5. A number that a version does not know is refused by it, and left out.
//!
//! Collected is what can hold a GPU up: launches, copies, memsets, waits, events, allocation, module and graph work,
//! contexts, streams. Queries (`cuEventQuery`, `cudaStreamQuery`) are left out: programs poll them a million times a
//! second, and getters of all kinds are, since each recorded call costs about a microsecond.
//!
//! `tests/cbids.rs` checks every number against its name.

/// Driver calls that are collected, ascending.
pub const DRIVER: &[u16] = &[
    1, 10, 11, 17, 18, 19, 20, 21, 22, 23, 29, 31, 33, 37, 38, 39, 43, 45, 47, 49, 51, 53, 54, 55, 56, 57,
    58, 60, 62, 64, 66, 67, 68, 69, 71, 73, 75, 77, 79, 81, 115, 116, 117, 119, 121, 124, 126, 127, 216, 218,
    220, 222, 224, 226, 235, 243, 244, 245, 249, 250, 251, 252, 253, 254, 276, 277, 278, 279, 280, 281, 282,
    283, 284, 285, 286, 287, 288, 289, 290, 291, 292, 293, 294, 295, 301, 302, 305, 306, 307, 318, 319, 320,
    321, 322, 326, 362, 363, 365, 367, 371, 379, 381, 382, 386, 387, 389, 397, 398, 399, 400, 401, 402, 403,
    404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 418, 419, 420, 421, 422, 423, 424, 425,
    426, 427, 428, 429, 430, 431, 432, 433, 436, 440, 441, 442, 458, 459, 460, 461, 462, 463, 467, 468, 473,
    474, 475, 476, 477, 478, 480, 495, 496, 497, 498, 513, 514, 515, 516, 527, 528, 539, 540, 544, 545, 547,
    548, 549, 550, 551, 552, 553, 561, 578, 580, 581, 587, 588, 598, 599, 600, 601, 602, 611, 612, 643, 645,
    652, 653, 656, 657, 659, 660, 661, 662, 663, 664, 665, 666, 667, 668, 678, 679, 680, 681, 682, 683, 696,
    716, 717, 720, 721, 757, 776, 777, 778, 779, 783, 784, 785, 789, 790, 796, 797, 798, 799, 800, 814, 815,
    816, 831, 832, 837, 838, 839, 840,
];

/// Runtime calls that are collected, ascending.
pub const RUNTIME: &[u16] = &[
    13, 16, 20, 21, 22, 23, 24, 25, 26, 27, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46,
    47, 48, 49, 50, 51, 52, 126, 129, 130, 131, 135, 137, 140, 142, 143, 144, 145, 147, 152, 153, 160, 161,
    162, 163, 164, 165, 198, 201, 202, 206, 211, 213, 214, 215, 216, 217, 218, 219, 220, 221, 222, 223, 224,
    225, 226, 227, 228, 229, 230, 231, 232, 233, 234, 235, 236, 239, 242, 243, 244, 245, 246, 247, 249, 250,
    252, 253, 269, 270, 272, 284, 285, 310, 311, 312, 313, 315, 316, 319, 320, 335, 348, 349, 370, 371, 373,
    374, 375, 376, 377, 391, 392, 418, 430, 431, 436, 437, 443, 444, 449, 450, 452, 453, 470, 471, 482, 483,
    484, 485, 509, 510, 511, 512, 550, 551, 554, 555, 556, 557,
];

/// Driver calls that launch exactly one kernel, ascending: compared with the kernels that arrive.
pub const DRIVER_LAUNCHES: &[u16] = &[307, 442, 477, 478, 652, 653];

/// Driver calls that are collected in the light mode, ascending: those that send work to a device, wait for it, allocate, free
/// or load. No runtime calls: each stands around one of these.
pub const DRIVER_LIGHT: &[u16] = &[
    17, 19, 20, 21, 38, 39, 121, 126, 216, 218, 220, 243, 245, 249, 250, 251, 276, 277, 278, 279, 280, 281,
    305, 306, 307, 319, 397, 398, 399, 408, 418, 421, 422, 423, 426, 428, 429, 430, 440, 442, 477, 478, 514,
    515, 643, 652, 653, 656, 657, 678, 679, 696, 776, 777, 796, 797, 800,
];

/// Whether a call is one of those that are collected. CUPTI before 12.5 cannot select: everything comes.
#[must_use]
pub fn is_collected(domain: &[u16], cbid: u32) -> bool {
    u16::try_from(cbid).is_ok_and(|cbid| domain.binary_search(&cbid).is_ok())
}
