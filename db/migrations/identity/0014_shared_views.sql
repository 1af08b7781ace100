ALTER TABLE "identity"."saved_views" ADD COLUMN IF NOT EXISTS "group_key" text CONSTRAINT "saved_views_group_key_groups_group_key_fk" REFERENCES "identity"."groups"("group_key") ON DELETE set null;--> statement-breakpoint
CREATE INDEX IF NOT EXISTS "saved_views_group_key_index" ON "identity"."saved_views" USING btree ("group_key");
