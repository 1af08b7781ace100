import { defineConfig } from 'drizzle-kit'

export default defineConfig({
  dialect: 'postgresql',
  schema: './db/token/tables.ts',
  out: './db/migrations/token',
  schemaFilter: ['token'],
})
