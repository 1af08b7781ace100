ALTER TABLE "identity"."users" ADD COLUMN IF NOT EXISTS "enrolled" boolean DEFAULT true NOT NULL;
