/**
 * Characters that texts must not hold: controls, line ends, invisible ones such as U+200B or direction changes, and
 * those that are no characters, such as U+FFFE.
 */
export const HIDDEN = '\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{DI}\\p{NChar}'
