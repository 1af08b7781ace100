/**
 * The form in which two usernames are the same (auth.md 8): NFKC, upper, lower, NFKC. Case alone would not do: some
 * letters meet only after both mappings.
 */
export const foldUsername = (username: string): string =>
  username.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC')
