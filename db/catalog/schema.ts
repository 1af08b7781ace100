import { pgSchema } from 'drizzle-orm/pg-core'

export const catalogSchema = pgSchema('catalog')
