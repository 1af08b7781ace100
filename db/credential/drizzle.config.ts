import { defineConfig } from 'drizzle-kit'

export default defineConfig({
  dialect: 'postgresql',
  schema: './db/credential/tables.ts',
  out: './db/migrations/credential',
  schemaFilter: ['credential'],
})
