import { defineConfig } from 'drizzle-kit'

export default defineConfig({
  dialect: 'postgresql',
  schema: ['./db/catalog/tables.ts', './db/catalog/beside.ts'],
  out: './db/migrations/catalog',
  schemaFilter: ['catalog'],
})
