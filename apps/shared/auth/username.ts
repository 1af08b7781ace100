/**
 * Returns the form in which two usernames are compared (auth.md 8): NFKC, upper, lower, NFKC. One case mapping is not
 * enough: some letters become equal only after both.
 */
export const foldUsername = (username: string): string =>
  username.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC')
