DROP INDEX "catalog"."audit_unsealed";--> statement-breakpoint
DROP INDEX "catalog"."audit_actor";--> statement-breakpoint
DROP INDEX "catalog"."audit_object";--> statement-breakpoint
ALTER TABLE "catalog"."audit" ALTER COLUMN "at" SET DEFAULT clock_timestamp();--> statement-breakpoint
CREATE INDEX "audit_id_index" ON "catalog"."audit" USING btree ("id") WHERE seal_seq is null;--> statement-breakpoint
CREATE INDEX "audit_actor_id_index" ON "catalog"."audit" USING btree ("actor","id");--> statement-breakpoint
CREATE INDEX "audit_object_id_index" ON "catalog"."audit" USING btree ("object","id");