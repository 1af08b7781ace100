import { defineConfig } from 'drizzle-kit'

export default defineConfig({
  dialect: 'postgresql',
  schema: './db/identity/tables.ts',
  out: './db/migrations/identity',
  schemaFilter: ['identity'],
})
